/* SPDX-License-Identifier: MIT */
/* What `sqlite3 .dump` says of the questions in a file of schema version 5: three wait, two of them but for TLS the same; one is
 * allowed, one was denied and is over, and the last, 6, was deleted. */
#ifndef NP_TEST_SESSION_STORE_V5_H
#define NP_TEST_SESSION_STORE_V5_H

/* clang-format off */
static const char store_v5_questions[] =
	"CREATE TABLE questions ( id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, place TEXT NOT"
	" NULL, host TEXT NOT NULL CHECK (length(host) > 0), port INTEGER NOT NULL CHECK (port BETWEEN 1 AND "
	"65535), writes INTEGER NOT NULL CHECK (writes IN (0, 1)), sandbox TEXT NOT NULL, method TEXT NOT NUL"
	"L, url TEXT NOT NULL CHECK (length(url) < 2048), body INTEGER NOT NULL, level INTEGER NOT NULL CHECK"
	" (level BETWEEN 0 AND 3), mode INTEGER NOT NULL CHECK (mode BETWEEN 1 AND 3), generation INTEGER NOT"
	" NULL CHECK (generation BETWEEN 0 AND 4294967295), policy TEXT NOT NULL, created_us INTEGER NOT NULL"
	", expires_us INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN ('pending', 'allowed', 'denied', "
	"'expired', 'void')), answer TEXT NOT NULL DEFAULT '' CHECK (answer IN ('', 'deny', 'once', 'host')),"
	" who TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', answered_us INTEGER NOT NULL DEFAULT"
	" 0, until_us INTEGER NOT NULL DEFAULT 0, over_us INTEGER NOT NULL DEFAULT 0) STRICT;"
	"INSERT INTO \"questions\" VALUES(1,'alice/open','p.yaml:3','w.example',443,1,'alice.open.1','POST','"
	"https://w.example/x',5,2,2,4,'hash',10,1000,'pending','','','',0,0,0);"
	"INSERT INTO \"questions\" VALUES(2,'alice/open','p.yaml:3','w.example',443,1,'alice.open.1','POST','"
	"http://w.example:443/x',5,2,2,4,'hash',10,1000,'pending','','','',0,0,0);"
	"INSERT INTO \"questions\" VALUES(3,'alice/open','p.yaml:3','h.example',443,0,'alice.open.1','GET','h"
	"ttps://h.example/',5,2,2,4,'hash',10,1000,'allowed','host','boss','fine',20,900,0);"
	"INSERT INTO \"questions\" VALUES(4,'alice/open','p.yaml:3','o.example',443,0,'alice.open.1','GET','h"
	"ttps://o.example/',5,2,2,4,'hash',10,1000,'denied','deny','boss','',20,0,30);"
	"INSERT INTO \"questions\" VALUES(5,'alice/open','p.yaml:3','t.example',443,1,'alice.open.1','','t.ex"
	"ample:443',5,2,2,4,'hash',10,1000,'pending','','','',0,0,0);"
	"CREATE INDEX questions_open ON questions (session) WHERE over_us = 0;"
	"CREATE UNIQUE INDEX questions_are_shared ON questions (session, place, host, port, writes, method = "
	"'', substr(url, 1, 6) = 'https:') WHERE state = 'pending';"
	"CREATE TRIGGER questions_enter_pending BEFORE INSERT ON questions WHEN NEW.state <> 'pending' OR NEW"
	".answer <> '' OR NEW.over_us <> 0 OR EXISTS (SELECT 1 FROM questions WHERE id = NEW.id) OR EXISTS (S"
	"ELECT 1 FROM questions WHERE state = 'pending' AND session = NEW.session AND place = NEW.place AND h"
	"ost = NEW.host AND port = NEW.port AND writes = NEW.writes AND (method = '') = (NEW.method = '') AND"
	" (substr(url, 1, 6) = 'https:') = (substr(NEW.url, 1, 6) = 'https:')) BEGIN SELECT RAISE(ABORT, 'a q"
	"uestion enters as pending, under a new id'); END;"
	"CREATE TRIGGER questions_stay_what_they_are BEFORE UPDATE ON questions WHEN NEW.id IS NOT OLD.id OR "
	"NEW.session IS NOT OLD.session OR NEW.place IS NOT OLD.place OR NEW.host IS NOT OLD.host OR NEW.port"
	" IS NOT OLD.port OR NEW.writes IS NOT OLD.writes OR NEW.sandbox IS NOT OLD.sandbox OR NEW.method IS "
	"NOT OLD.method OR NEW.url IS NOT OLD.url OR NEW.body IS NOT OLD.body OR NEW.level IS NOT OLD.level O"
	"R NEW.mode IS NOT OLD.mode OR NEW.generation IS NOT OLD.generation OR NEW.policy IS NOT OLD.policy O"
	"R NEW.created_us IS NOT OLD.created_us OR NEW.expires_us IS NOT OLD.expires_us BEGIN SELECT RAISE(AB"
	"ORT, 'what was asked for does not change'); END;"
	"CREATE TRIGGER questions_are_answered_once BEFORE UPDATE ON questions WHEN OLD.state <> 'pending' AN"
	"D (NEW.state <> OLD.state OR NEW.answer <> OLD.answer OR NEW.who <> OLD.who OR NEW.reason <> OLD.rea"
	"son OR NEW.answered_us <> OLD.answered_us OR NEW.until_us <> OLD.until_us) BEGIN SELECT RAISE(ABORT,"
	" 'an answer is never changed'); END;"
	"CREATE TRIGGER questions_are_answered_in_time BEFORE UPDATE ON questions WHEN OLD.state = 'pending' "
	"AND NEW.state IN ('allowed', 'denied') AND (NEW.who = '' OR NEW.answer = '' OR (NEW.state = 'denied'"
	") <> (NEW.answer = 'deny') OR NEW.answered_us = 0 OR NEW.answered_us >= OLD.expires_us) BEGIN SELECT"
	" RAISE(ABORT, 'an answer has a name, and comes in time'); END;"
	"CREATE TRIGGER questions_without_an_answer BEFORE UPDATE ON questions WHEN NEW.state IN ('pending', "
	"'expired', 'void') AND (NEW.answer <> '' OR (NEW.state = 'pending') <> (NEW.over_us = 0)) BEGIN SELE"
	"CT RAISE(ABORT, 'nobody has answered'); END;"
	"CREATE TRIGGER questions_stay_over BEFORE UPDATE ON questions WHEN OLD.over_us <> 0 AND NEW.over_us "
	"<> OLD.over_us BEGIN SELECT RAISE(ABORT, 'what is over stays over'); END;"
	"CREATE TRIGGER questions_stay_until_they_are_over BEFORE DELETE ON questions WHEN OLD.over_us = 0 BE"
	"GIN SELECT RAISE(ABORT, 'the question is not over'); END;"
	"DELETE FROM sqlite_sequence WHERE name = 'questions';"
	"INSERT INTO \"sqlite_sequence\" VALUES('questions',6);";
/* clang-format on */

#endif
