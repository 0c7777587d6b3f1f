"""Reads exported Parquet files with DuckDB and with pandas: servers, pages and bytes of pages, by servers and by pages, each on a line."""

import pathlib
import sys

import duckdb
import pandas

directory = pathlib.Path(sys.argv[1])
servers, history, pages, links = (str(directory / f"{name}.parquet") for name in ("servers", "history", "pages", "links"))

print(*duckdb.sql(f"select count(*), sum(pages), sum(page_bytes) from '{servers}'").fetchone())
print(*duckdb.sql(
    f"""select count(distinct url_host_name), count(*) filter (outcome = 'page'), sum(page_bytes) from '{pages}'
    where fetch_time > timestamptz '2020-01-01' and url_host_tld = 'test' and url_path like '/%' and not no_index"""
).fetchone())
frame = pandas.read_parquet(servers)
print(frame.url_host_name.nunique(), frame.pages.sum(), frame.page_bytes.sum())
frame = pandas.read_parquet(pages)
assert str(frame.fetch_time.dt.tz) == "UTC" and frame.fetch_time.dt.year.min() > 2020, frame.fetch_time
assert frame.surt_host_name.str.startswith("test,").all(), frame.surt_host_name
print(frame.url_host_name.nunique(), (frame.outcome == "page").sum(), frame.page_bytes.sum())

# What links say of hosts is what pages say.
internal = duckdb.sql(f"select sum(links) from '{links}' where to_host = url_host_name").fetchone()
assert internal == duckdb.sql(f"select sum(internal_links) from '{pages}'").fetchone(), internal
assert len(pandas.read_parquet(history)) == len(pandas.read_parquet(servers))
