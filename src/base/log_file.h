/* SPDX-License-Identifier: Apache-2.0 */
/* The log file of a process in the background (log_to_file() in log.h), and the journal. */
#ifndef HOLDFAST_BASE_LOG_FILE_H
#define HOLDFAST_BASE_LOG_FILE_H

#include "base/base.h"

/* `n` bytes were written.  Called by the thread that writes lines; rotates the file if it is due.
 * Without a log file it does nothing. */
void log_file_grew(size_t n);
/* Whether the descriptor is the stream that systemd names in JOURNAL_STREAM ("DEVICE:INODE"); NULL:
 * the variable is not set. */
bool log_fd_is_journal(int fd, const char *journal_stream);

#endif
