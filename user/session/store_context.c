/* SPDX-License-Identifier: MIT */
/* What a session is for, as its platform says: for deciders. It goes with the session. */
#include <errno.h>

#include "base/sql.h"
#include "session/store_internal.h"

const char store_context_schema[] = "CREATE TABLE contexts ("
				    " session TEXT PRIMARY KEY REFERENCES sessions (name) ON DELETE CASCADE,"
				    " purpose TEXT NOT NULL DEFAULT '',"
				    " context TEXT NOT NULL DEFAULT ''"
				    ") STRICT, WITHOUT ROWID;";

int store_context_put(struct store *store, const char *name, const char *purpose, const char *context)
{
	sqlite3_stmt *statement = store->statements[STORE_CONTEXT_PUT];
	int r = begin_synced(store);

	if (r)
		return r;
	sql_bind_text(statement, 1, name);
	sql_bind_text(statement, 2, purpose);
	sql_bind_text(statement, 3, context);
	r = sql_run(statement, NULL);
	return sql_end(store->db, r);
}

int store_context_get(struct store *store, const char *name, struct context_row *ret)
{
	sqlite3_stmt *statement = store->statements[STORE_CONTEXT_GET];
	int r;

	sql_bind_text(statement, 1, name);
	r = sql_row(statement);
	if (!r && (sql_column_copy(statement, 0, ret->purpose, sizeof(ret->purpose)) ||
		   sql_column_copy(statement, 1, ret->context, sizeof(ret->context))))
		r = -EUCLEAN;
	sql_done(statement);
	return r;
}
