/* SPDX-License-Identifier: Apache-2.0 */
/* Characters that draw nothing, or reorder the characters beside them: controls, bidi controls,
 * zero-width characters, fillers, variation selectors and tags.  A reader cannot see them, so
 * terminals show their numbers, and new names may not contain them. */
#ifndef HOLDFAST_BASE_INVISIBLE_H
#define HOLDFAST_BASE_INVISIBLE_H

#include "base/utf8.h"

static inline bool utf8_is_invisible(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x0000, 0x001f},   /* C0 */
        {0x007f, 0x009f},   /* DEL, C1 */
        {0x00ad, 0x00ad},   /* soft hyphen */
        {0x034f, 0x034f},   /* combining grapheme joiner */
        {0x061c, 0x061c},   /* Arabic letter mark */
        {0x115f, 0x1160},   /* Hangul fillers */
        {0x17b4, 0x17b5},   /* Khmer inherent vowels */
        {0x180b, 0x180f},   /* Mongolian selectors and separator */
        {0x200b, 0x200f},   /* zero-width space and joiners, direction marks */
        {0x2028, 0x202e},   /* line and paragraph separator, embeddings and overrides */
        {0x2060, 0x206f},   /* word joiner, invisible operators, isolates */
        {0x2800, 0x2800},   /* Braille blank */
        {0x3164, 0x3164},   /* Hangul filler */
        {0xfe00, 0xfe0f},   /* variation selectors */
        {0xfeff, 0xfeff},   /* byte order mark */
        {0xffa0, 0xffa0},   /* half-width Hangul filler */
        {0xfff0, 0xfffb},   /* specials */
        {0x13430, 0x1345f}, /* hieroglyph format controls */
        {0x1bca0, 0x1bca3}, /* shorthand format controls */
        {0x1d173, 0x1d17a}, /* musical format controls */
        {0xe0000, 0xe0fff}, /* tags, more variation selectors */
    };

    if (code >= ' ' && code < 0x7f)
        return false;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]) && ranges[i].first <= code; i++)
        if (code <= ranges[i].last)
            return true;
    return false;
}

#endif
