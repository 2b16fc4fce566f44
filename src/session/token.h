/* SPDX-License-Identifier: Apache-2.0 */
/* Names that Holdfast mints for sessions and transports: 256 random bits in base64url.  A name is
 * not a credential: its holder must still authenticate as its owner. */
#ifndef HOLDFAST_SESSION_TOKEN_H
#define HOLDFAST_SESSION_TOKEN_H

#include "base/str.h"

#define HANDLE_LENGTH 47 /* "ses_" + 43 */
#define TRANSPORT_ID_LENGTH 43
void token_handle(char ret_text[HANDLE_LENGTH + 1]);
void token_transport_id(char ret_text[TRANSPORT_ID_LENGTH + 1]);
bool token_looks_like_handle(struct str s);
bool token_looks_like_transport_id(struct str s);
/* The SHA-256 of a transport id.  Rows hold it in place of the id. */
void token_hash(struct str transport_id, uint8_t ret[32]);

#endif
