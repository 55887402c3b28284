/* SPDX-License-Identifier: MIT */
/* Who has started something in a session. */
#include "session/store_internal.h"

static int starter_look(sqlite3_stmt *statement, const struct session_name *name, const char *who, bool *ret)
{
	int r;

	sql_bind_text(statement, 1, name->text);
	sql_bind_text(statement, 2, who);
	r = sql_row(statement);
	if (!r)
		*ret = sqlite3_column_int(statement, 0) != 0;
	sql_done(statement);
	return r;
}

int store_starter_is(struct store *store, const struct session_name *name, const char *who, bool *ret)
{
	return starter_look(store->statements[STORE_STARTER_IS], name, who, ret);
}

int store_starter_of_user(struct store *store, const struct session_name *name, const char *who, bool *ret)
{
	return starter_look(store->statements[STORE_STARTER_OF_USER], name, who, ret);
}

int store_starter_put(struct store *store, const struct session_name *name, const char *who)
{
	sqlite3_stmt *statement = store->statements[STORE_STARTER_INSERT];
	const bool temporary = session_name_is_temporary(name);
	bool is = false;
	int r = store_starter_is(store, name, who, &is);

	if (r || is)
		return r;
	r = temporary ? begin_unsynced(store) : begin_synced(store);
	if (!r) {
		sql_bind_text(statement, 1, name->text);
		sql_bind_text(statement, 2, who);
		r = sql_run(statement, NULL);
	}
	return temporary ? end_unsynced(store, r) : sql_end(store->db, r);
}
