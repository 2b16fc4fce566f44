/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of words.h's table: irregular forms, and words that say little or nothing about which
 * tool is meant. */
#include "profile/words_table.h"

const struct words_row words_forms[] = {
    {WORDS_FORM, "notify notification notice", NULL},
    {WORDS_FORM, "subscribe subscription subscriber", NULL},
    {WORDS_FORM, "translate translator", NULL},
    {WORDS_FORM, "calculate calculator", NULL},
    {WORDS_FORM, "remind reminder", NULL},
    {WORDS_FORM, "pay payment", NULL},
    {WORDS_FORM, "approve approval", NULL},
    {WORDS_FORM, "remove removal", NULL},
    {WORDS_FORM, "available availability", NULL},
    {WORDS_FORM, "retrieve retrieval", NULL},
    {WORDS_FORM, "convert converter conversion", NULL},
    {WORDS_FORM, "schedule scheduler", NULL},
    {WORDS_FORM, "search searcher", NULL},
    {WORDS_FORM, "describe description", NULL},
    {WORDS_FORM, "transcribe transcription", NULL},
    {WORDS_FORM, "deliver delivery", NULL},
    {WORDS_FORM, "ship shipment", NULL},
    {WORDS_FORM, "reserve reservation", NULL},
    {WORDS_FORM, "analyze analysis analytics", NULL},
    {WORDS_FORM, "compare comparison", NULL},
    {WORDS_FORM, "recommend recommendation", NULL},
    {WORDS_FORM, "apply application", NULL},
    {WORDS_FORM, "organize organise organization", NULL},
    {WORDS_FORM, "summarize summarise summary", NULL},
    {WORDS_FORM, "authenticate auth authorize authorization", NULL},
    {WORDS_FORM, "configure config configuration", NULL},
    {WORDS_FORM, "statistic stat", NULL},
    {WORDS_FORM, "drive driver", NULL},
    {WORDS_FORM, "track tracker", NULL},
    {WORDS_FORM, "fail failure", NULL},
    {WORDS_FORM, "arrive arrival", NULL},
    {WORDS_FORM, "depart departure", NULL},
    {WORDS_FORM, "install installation", NULL},
    {WORDS_FORM, "inform information info", NULL},
    {WORDS_FORM, "invite invitation", NULL},
    {WORDS_FORM, "modify modification", NULL},
    {WORDS_FORM, "verify verification", NULL},
    {WORDS_FORM, "categorize category", NULL},
    {WORDS_FORM, "synchronize sync", NULL},
    {WORDS_FORM, "repository repo", NULL},
    {WORDS_FORM, "document doc", NULL},
    {WORDS_FORM, "directory dir", NULL},
    {WORDS_FORM, "database db", NULL},
    {WORDS_FORM, "message msg", NULL},
    {WORDS_FORM, "parameter param", NULL},
    {WORDS_FORM, "administrator admin", NULL},
    {WORDS_FORM, "organization org organisation", NULL},
    {WORDS_FORM, "environment env", NULL},
    {WORDS_FORM, "sell sale", NULL},
    {WORDS_FORM, "live life", NULL},
    {WORDS_FORM, "mail mailbox email", NULL},
    {WORDS_FORM, "screenshot screen", NULL},
    {WORDS_FORM, "photo photograph", NULL},
    {WORDS_FORM, "edit editor", NULL},
    {WORDS_FORM, "contribute contributor", NULL},
};
const size_t words_n_forms = countof(words_forms);

/* Irregular forms, each with its word.  A word that is its own form keeps its ending. */
const char *const words_irregular[][2] = {
    {"sent", "send"},
    {"wrote", "write"},
    {"written", "write"},
    {"bought", "buy"},
    {"made", "make"},
    {"found", "find"},
    {"got", "get"},
    {"gotten", "get"},
    {"told", "tell"},
    {"said", "say"},
    {"saw", "see"},
    {"seen", "see"},
    {"took", "take"},
    {"taken", "take"},
    {"gave", "give"},
    {"given", "give"},
    {"went", "go"},
    {"gone", "go"},
    {"ran", "run"},
    {"began", "begin"},
    {"begun", "begin"},
    {"broke", "break"},
    {"broken", "break"},
    {"built", "build"},
    {"chose", "choose"},
    {"chosen", "choose"},
    {"drew", "draw"},
    {"drawn", "draw"},
    {"drove", "drive"},
    {"driven", "drive"},
    {"fell", "fall"},
    {"felt", "feel"},
    {"forgot", "forget"},
    {"forgotten", "forget"},
    {"held", "hold"},
    {"kept", "keep"},
    {"knew", "know"},
    {"known", "know"},
    {"led", "lead"},
    {"left", "leave"},
    {"lost", "lose"},
    {"met", "meet"},
    {"paid", "pay"},
    {"sold", "sell"},
    {"shown", "show"},
    {"spent", "spend"},
    {"spoke", "speak"},
    {"spoken", "speak"},
    {"thought", "think"},
    {"threw", "throw"},
    {"thrown", "throw"},
    {"understood", "understand"},
    {"woke", "wake"},
    {"won", "win"},
    {"heard", "hear"},
    {"brought", "bring"},
    {"caught", "catch"},
    {"taught", "teach"},
    {"sang", "sing"},
    {"flew", "fly"},
    {"flown", "fly"},
    {"hid", "hide"},
    {"hidden", "hide"},
    {"put", "put"},
    {"people", "person"},
    {"persons", "person"},
    {"children", "child"},
    {"men", "man"},
    {"women", "woman"},
    {"indices", "index"},
    {"matrices", "matrix"},
    {"analyses", "analysis"},
    {"criteria", "criterion"},
    {"media", "media"},
    {"news", "news"},
    {"settings", "settings"},
    {"setting", "settings"},
    {"strings", "string"},
    {"string", "string"},
    {"evenings", "evening"},
    {"evening", "evening"},
    {"mornings", "morning"},
    {"morning", "morning"},
    {"running", "run"},
    {"getting", "get"},
    {"using", "use"},
    {"used", "use"},
    {"lenses", "lens"},
    {"lens", "lens"},
    {"does", "do"},
    {"did", "do"},
    {"done", "done"},
    {"best", "good"},
    {"better", "good"},
    {"worse", "bad"},
    {"worst", "bad"},
    {"canvases", "canvas"},
    {"canvas", "canvas"},
    {"was", "be"},
    {"were", "be"},
    {"been", "be"},
    {"swapped", "swap"},
    {"lying", "lie"},
    {"dying", "die"},
    {"ate", "eat"},
};
const size_t words_n_irregular = countof(words_irregular);

/* Words without meaning for the choice of a tool.  Phrases are matched first. */
const char words_idle[] =
    "a an the to of for and or in on at by as if so but not no nor than then too also just only "
    "my me i mine we us our ours you your yours he him his she her hers they them their theirs it "
    "its "
    "is are was were be been being am do does did doing has have had having will would shall "
    "should can could may might must let lets "
    "this that these those there here s t m d re ve ll don doesn didn isn aren wasn won wouldn "
    "couldn shouldn hasn haven "
    "please kindly hey hi hello thanks thank want wanna need like gonna going go got help able "
    "would "
    "try really actually maybe perhaps quickly quick easily simply "
    "how with without from into onto out off over under again through via per about away back "
    "some such same other another each both few more most much many lot lots bit bunch kind "
    "thing "
    "things stuff one ones own very still already yet ever never always "
    "way able etc eg ie let us because while during before after inside within using use used "
    "really "
    "i'd";

/* Words that occur in many queries of any kind: verbs without an object of their own, times, sizes.
 * They count less than their rarity among the tools would give. */
const char words_weak[] =
    "give take put make say see know keep tell show look get bring leave come think "
    "happen new old first last next since until between now today tomorrow yesterday "
    "tonight morning afternoon evening night noon day week weekend month year hour minute second "
    "moment time date ago later soon early late recent recently latest current currently long "
    "short "
    "big small large little high low good bad great nice cheap expensive better best right wrong "
    "sure ready half "
    "whole part piece set full empty different similar certain specific exact main all every any "
    "anything everything something nothing somebody someone anybody anyone nobody everybody "
    "everyone "
    "people what which who whose whom when where why whether monday tuesday wednesday thursday "
    "friday "
    "saturday sunday top bottom";

/* A query that begins with one of these is a question and asks to read. */
const char words_asking[] = "is are was were am do does did has have had will would what whats "
                            "which who whose whom when where "
                            "why how";

/* Tools with such a name delete existing data.  They rank lower unless the query asks for that. */
const char words_destroying[] = "delete remove erase trash discard drop purge destroy wipe clear "
                                "cancel revoke kill terminate uninstall "
                                "void";

/* The second words of phrases that may contain other words: "throw that away", "let them know". */
const char words_particles[] = "up down off out away over back on know";
