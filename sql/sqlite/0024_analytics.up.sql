-- SPDX-License-Identifier: Apache-2.0
-- Rollups of calls: one row for each tenant, step (0: 5 minutes, 1: hour, 2: day), span and set of labels.
-- span: its beginning, in units of 5 minutes since 1970.  label: the set of labels, a number made from
-- the tenant and them.  The fold writes these rows in the transaction that moves its mark.
CREATE TABLE analytics_labels (
    id      INTEGER PRIMARY KEY NOT NULL,
    server  TEXT NOT NULL,
    tool    TEXT NOT NULL,
    client  TEXT NOT NULL,
    owner   TEXT NOT NULL,
    era     TEXT NOT NULL,
    carrier TEXT NOT NULL
) STRICT;
CREATE TABLE analytics_rollups (
    tenant_id TEXT NOT NULL,
    step      INTEGER NOT NULL CHECK (step IN (0, 1, 2)),
    span      INTEGER NOT NULL,
    label     INTEGER NOT NULL,
    writer    INTEGER NOT NULL,
    cells     BLOB NOT NULL,
    PRIMARY KEY (tenant_id, step, span, label, writer)
) STRICT, WITHOUT ROWID;
