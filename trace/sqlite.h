/* A model as an SQLite database (tables and views: trace/sqlite_tables.sql, which the database quotes itself). */
#pragma once
#include "trace/model.h"

/* `path` is an empty file. False with one line in `why`. */
bool sqlite_write(const char *path, const struct model *model, char *why, size_t why_bytes);
