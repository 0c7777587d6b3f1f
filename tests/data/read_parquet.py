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

# What `results` breaks servers down by is what their columns say.
GROUPS = {
    "country": "country",
    "tld": "url_host_tld",
    "status": "status",
    "language": "coalesce(lower(split_part(language, '-', 1)), if(pages = 0, 'unknown', 'undeclared'))",
    "script": "coalesce(script, 'unknown')",
    "http": "coalesce(http_version, 'unknown')",
    "tls": "coalesce(tls_version, if(http_version is null, 'unknown', 'none'))",
    "family": "coalesce(address_family, 'unknown')",
}
for by, column in GROUPS.items():
    told = {row.value: (row.servers, row.pages, row.requests) for row in pandas.read_csv(directory / f"{by}.csv", dtype={"value": str}).itertuples()}
    rows = duckdb.sql(f"select {column}, count(*), sum(pages), sum(requests) from '{servers}' group by 1").fetchall()
    assert {value: tuple(counts) for value, *counts in rows} == told, (by, rows, told)
frame = pandas.read_parquet(servers)
told = pandas.read_csv(directory / "http.csv", dtype={"value": str}).set_index("value").servers.to_dict()
assert frame.groupby(frame.http_version.fillna("unknown")).size().to_dict() == told, (frame.http_version, told)
types = dict(duckdb.sql(f"select column_name, column_type from (describe select * from '{servers}')").fetchall())
expected = {"rtt_ms": "DOUBLE", "redirects_to_https": "BOOLEAN", "hsts_ms": "BIGINT", "certificate_not_after_at": "TIMESTAMP WITH TIME ZONE", "title": "VARCHAR"}
assert {name: types[name] for name in expected} == expected, types
answers = duckdb.sql(f"select sum(fetch_200), sum(fetch_redirPerm + fetch_redirTemp + fetch_3xx), min(rtt_ms) >= 0 from '{servers}'").fetchone()
by_page = "count(*) filter (fetch_status // 100 = 2), count(*) filter (fetch_status // 100 = 3 and fetch_status != 304), true"
assert answers == duckdb.sql(f"select {by_page} from '{pages}'").fetchone(), answers
