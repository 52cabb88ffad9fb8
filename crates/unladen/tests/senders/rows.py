"""Prints every row of the span files in a folder as a line of JSON: ids as hexadecimal digits, "" for what is not there,
and all attributes in one object, whether they have columns of their own or not. With the operation of the parent."""

import glob
import json
import sys

import duckdb

FIXED = "trace_id span_id parent_id kind status protocol service instance operation start_ns duration_ns arrival_ns size request"

if not glob.glob(f"{sys.argv[1]}/spans/*.parquet"):
    sys.exit()
spans = f"read_parquet('{sys.argv[1]}/spans/*.parquet', union_by_name = true)"
found = duckdb.sql(f"""
    SELECT parent.operation AS parent_operation, span.*
    FROM {spans} AS span LEFT JOIN {spans} AS parent
    ON parent.trace_id = span.trace_id AND parent.span_id = span.parent_id
""")
fixed = {"parent_operation", *FIXED.split()}
while row := found.fetchone():
    line, attributes = {}, {}
    for name, value in zip(found.columns, row):
        if name == "attributes":
            attributes.update(json.loads(value or "{}"))
        elif name in fixed:
            line[name] = value.hex() if isinstance(value, bytes) else "" if value is None else value
        elif value is not None:
            attributes[name] = value
    print(json.dumps(line | {"attributes": attributes}))
