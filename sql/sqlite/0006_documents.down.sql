-- SPDX-License-Identifier: Apache-2.0
-- Back to before documents had a history: it is lost, the files stay.

DROP TABLE document_reads;
DROP TABLE document_contents;
DROP TABLE document_revisions;
DROP TABLE documents;
