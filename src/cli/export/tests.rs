//! Tests of files of rows: written, cut off, gone on with; and of owners that lie.

use super::*;
use crate::cli::export::{
    column::Row,
    text::{Lines, Text},
};
use crate::{
    cli::walk::Sink,
    node::api::fake::{FakeNode, access_point},
};
use nearcrawl_model::{access_point::AccessPoint, url::Host};
use serde_json::{Value, json};
use std::fs;

const OWNER: &str = "12D3KooWEeb1Zenzi2ukXNL4jegf7qgCbVDQ4XTx55YZ3kjLcUyQ";

fn owner() -> AccessPoint {
    OWNER.parse().unwrap()
}

fn args(out: &Path, format: Format, resume: bool) -> ServersArgs {
    ServersArgs { format, survey: None, out: Some(out.to_owned()), resume, member: None, api: None }
}

fn object(json: &str) -> Row {
    let Value::Object(mut row) = serde_json::from_str(json).unwrap() else { panic!("{json}") };
    row.insert("access_point".to_owned(), Value::String(OWNER.to_owned()));
    row
}

fn sink(kind: Kind, output: Output) -> RowSink {
    RowSink::new(kind, To::Rows(Box::new(output)), Progress::new(0), Wanted::All)
}

fn finish(sink: RowSink) {
    sink.finish(&[]).unwrap();
}

#[test]
fn an_export_that_was_cut_off_goes_on_behind_its_last_whole_row() {
    let directory = tempfile::tempdir().unwrap();
    for format in [Format::Jsonl, Format::Csv] {
        let path = directory.path().join("servers");
        let open = |resume| self::open(&args(&path, format, resume), &servers::COLUMNS, false, &mut Hosts::default()).unwrap();
        let row = |host: &str| object(&format!(r#"{{"host":"{host}","software":"A, \"b\"\n","pages":3,"by_status":{{"200":3}}}}"#));
        let (output, place) = open(false);
        assert_eq!(place, None);
        let mut to = sink(Kind::Servers, output);
        for host in ["a.ke", "b.ke"] {
            assert!(to.row(owner(), row(host)).unwrap());
        }
        finish(to);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let (output, place) = open(true);
        assert_eq!(place, Some((owner(), "a.ke".parse().unwrap())));
        let mut to = sink(Kind::Servers, output);
        to.row(owner(), row("b.ke")).unwrap();
        finish(to);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
    }
}

#[test]
fn a_csv_row_has_plain_columns_the_rest_as_json_and_no_formula() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("servers.csv");
    let (output, _) = open(&args(&path, Format::Csv, false), &servers::COLUMNS, false, &mut Hosts::default()).unwrap();
    let mut to = sink(Kind::Servers, output);
    let row = r#"{"host":"a.ke","pages":3,"software":"=HYPERLINK(\"x\"),\u0007\n\"","crawl_delay_ms":null,"by_status":{"200":3}}"#;
    to.row(owner(), object(row)).unwrap();
    finish(to);
    let mut reader = csv::Reader::from_path(&path).unwrap();
    let head = reader.headers().unwrap().clone();
    let cells = reader.records().next().unwrap().unwrap();
    assert_eq!((cells.len(), head.len()), (servers::COLUMNS.len() + 1, servers::COLUMNS.len() + 1));
    let cell = |name: &str| &cells[head.iter().position(|column| column == name).unwrap()];
    assert_eq!((cell("access_point"), cell("host"), cell("pages"), cell("crawl_delay_ms")), (OWNER, "a.ke", "3", ""));
    assert_eq!((cell("software"), cell("other_json")), ("'=HYPERLINK(\"x\"),\"", r#"{"by_status":{"200":3}}"#));
}

#[test]
fn runs_are_rows_and_an_export_of_them_goes_on_before_the_server_that_was_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let server = |host: &str| {
        let run = |run: u32| format!(r#"{{"run":{run},"country":"KE","pages":{},"later":1}}"#, 10 * run);
        object(&format!(r#"{{"host":"{host}","tree":"a.ke","runs_left_out":0,"runs":[{},{},{}]}}"#, run(1), run(2), run(4)))
    };
    for format in [Format::Jsonl, Format::Csv] {
        let path = directory.path().join("history");
        let open = |resume| self::open(&args(&path, format, resume), &history::COLUMNS, true, &mut Hosts::default()).unwrap();
        let mut to = sink(Kind::History, open(false).0);
        for host in ["a.ke", "b.ke"] {
            assert!(to.row(owner(), server(host)).unwrap());
        }
        finish(to);
        let whole = fs::read_to_string(&path).unwrap();
        let head = usize::from(format == Format::Csv);
        assert_eq!(whole.lines().count(), 6 + head);
        assert!(whole.lines().nth(head + 1).unwrap().contains(if head > 0 { ",a.ke,2,KE," } else { "\"run\":2" }));
        // All but the last line of each of the servers.
        for (lines, place) in [(5, Some((owner(), "a.ke".parse().unwrap()))), (2, None)] {
            let cut: String = whole.lines().take(lines + head).map(|line| format!("{line}\n")).collect();
            fs::write(&path, cut).unwrap();
            let (output, found) = open(true);
            assert_eq!(found, place);
            let mut to = sink(Kind::History, output);
            let rest = if place.is_some() { &["b.ke"][..] } else { &["a.ke", "b.ke"] };
            rest.iter().for_each(|host| assert!(to.row(owner(), server(host)).unwrap()));
            finish(to);
            assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        }
        let mut to = sink(Kind::History, open(false).0);
        assert!(!to.row(owner(), object(r#"{"host":"a.ke","runs":[7]}"#)).unwrap());
        assert!(!to.row(owner(), object(r#"{"host":"a.ke"}"#)).unwrap());
        assert!(to.row(owner(), object(r#"{"host":"a.ke","runs":[]}"#)).unwrap());
    }
}

#[test]
fn a_file_of_something_else_is_not_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "remember the milk\n").unwrap();
    let opened = open(&args(&path, Format::Jsonl, true), &servers::COLUMNS, false, &mut Hosts::default());
    assert_eq!(opened.err().map(|why| why.exit), Some(Exit::Data));
    assert_eq!(fs::read_to_string(&path).unwrap(), "remember the milk\n");
}

fn link_row(more: Value) -> Row {
    let mut row = json!({"host": "a.ke", "run": 2, "run_state": "complete"});
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object(&row.to_string())
}

fn id(number: u64) -> String {
    format!("{number:016x}")
}

/// A page of a host with two links within, three to two other hosts and one out of scope, and a second page with two of them.
fn link_rows(by_page: bool) -> Vec<Row> {
    let names = if by_page {
        ["http://a.ke/", "http://a.ke/x", "http://b.ke/1", "http://b.ke/2", "http://c.ke/"]
    } else {
        ["a.ke", "a.ke", "b.ke", "b.ke", "c.ke"]
    };
    let named: String = (1..=5).map(id).collect();
    let children = |ids: &[u64]| if by_page { ids.iter().map(|number| id(*number)).collect::<String>() } else { String::new() };
    let elsewhere = |ids: &[u64]| ids.iter().map(|number| id(*number)).collect::<String>();
    vec![
        link_row(json!({"names": names, "named": named})),
        link_row(
            json!({"url": "http://a.ke/", "internal": 2, "children": children(&[1, 2]), "elsewhere": elsewhere(&[3, 4, 5]), "beyond": ["x.com"], "beyond_urls": 3}),
        ),
        link_row(json!({"url": "http://a.ke/x", "elsewhere": elsewhere(&[3, 99])})),
    ]
}

#[test]
fn links_are_counted_from_host_to_host_or_told_one_by_one() {
    let mut links = Links::new(false);
    for row in link_rows(false) {
        assert!(links.take(owner(), row, |_, _| Err(())).unwrap());
    }
    let rows: Vec<_> = links
        .end()
        .into_iter()
        .map(|row| (row["to_host"].clone(), row["pages"].clone(), row["links"].clone(), row["in_scope"].clone()))
        .collect();
    let expected =
        [("a.ke", 1, json!(2), true), ("b.ke", 2, json!(3), true), ("c.ke", 1, json!(1), true), ("x.com", 1, Value::Null, false)];
    assert_eq!(rows, expected.map(|(host, pages, links, scope)| (json!(host), json!(pages), links, json!(scope))));
    assert_eq!(links.unnamed, 1);

    let (mut links, mut told) = (Links::new(true), Vec::new());
    for row in link_rows(true) {
        let taken = links.take::<()>(owner(), row, |from, link| {
            told.push(format!("{from} {:?} {:?} {}", link.to_host, link.to_url, link.in_scope));
            Ok(())
        });
        assert_eq!(taken, Ok(true));
    }
    assert_eq!(told.len(), 8);
    assert_eq!(told[4], r#"http://a.ke/ Some("c.ke") Some("http://c.ke/") true"#);
    assert_eq!(told[5], r#"http://a.ke/ Some("x.com") None false"#);
    assert_eq!(told[7], "http://a.ke/x None None true");
}

#[test]
fn rows_that_lie_about_links_are_none() {
    let mut links = Links::new(true);
    let wrong = [
        json!({"url": "http://b.ke/"}),
        json!({"url": "javascript:1"}),
        json!({"names": ["http://b.ke/"], "named": ""}),
        json!({"names": ["b.ke/ x"], "named": id(1)}),
        json!({"children": "zz"}),
        json!({"run": "two"}),
    ];
    for row in wrong {
        assert_eq!(links.take::<()>(owner(), link_row(row.clone()), |_, _| Ok(())), Ok(false), "{row}");
    }
}

#[test]
fn rows_of_a_host_that_are_not_whole_are_taken_back_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("links.jsonl");
    let (output, _) = open(&args(&path, Format::Jsonl, false), &links::PAGE_COLUMNS, true, &mut Hosts::default()).unwrap();
    let mut to = sink(Kind::Links(Box::new(Links::new(true))), output);
    for row in link_rows(true) {
        assert!(to.row(owner(), row).unwrap());
    }
    to.host_ends().unwrap();
    for row in link_rows(true).into_iter().take(2) {
        assert!(to.row(owner(), row).unwrap());
    }
    assert!(to.host_fails().unwrap());
    finish(to);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 8);
    let mut stays = Vec::new();
    let (_, place) =
        Text::open(&path, (Lines::Json, &links::PAGE_COLUMNS[..]), true, true, |host: &Host| stays.push(host.clone())).unwrap();
    assert_eq!((place, stays.len()), (None, 0), "the only host is written anew");
}

#[test]
fn a_parquet_file_has_its_name_only_when_it_is_whole_and_is_gone_on_with_till_then() {
    let directory = tempfile::tempdir().unwrap();
    let (path, spool) = (directory.path().join("pages.parquet"), directory.path().join("pages.parquet.part"));
    let row = |host: &str, page: u32| {
        object(&format!(
            r#"{{"host":"{host}","tree":"{host}","run":1,"run_state":"complete","url":"http://{host}/{page}","level":0,"outcome":"page",
               "fetch_time":"2026-11-25T08:00:00.000Z","took_ms":1,"bytes":7,"page_bytes":7,"no_index":true,"no_follow":false,
               "internal_links":0,"external_links":0,"links_beyond_scope":0}}"#
        ))
    };
    let open = |resume, seen: &mut Hosts| self::open(&args(&path, Format::Parquet, resume), &pages::COLUMNS, true, seen).unwrap();
    let write = |to: &mut RowSink, host: &str, pages: u32| {
        (0..pages).for_each(|page| assert!(to.row(owner(), row(host, page)).unwrap()));
        to.host_ends().unwrap();
    };
    let mut to = sink(Kind::Pages, open(false, &mut Hosts::default()).0);
    write(&mut to, "a.ke", 2);
    assert!(to.row(owner(), row("b.ke", 0)).unwrap() && to.host_fails().unwrap(), "its rows are taken back");
    write(&mut to, "c.ke", 3);
    assert!(!path.exists());
    finish(to);
    let whole = fs::read(&path).unwrap();
    assert_eq!((&whole[..4], &whole[whole.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
    fs::remove_file(&path).unwrap();

    // It is killed within the last row, and gone on with: the rows of that server come anew.
    let mut to = sink(Kind::Pages, open(false, &mut Hosts::default()).0);
    write(&mut to, "a.ke", 2);
    write(&mut to, "c.ke", 3);
    drop(to);
    let written = fs::read(&spool).unwrap();
    fs::write(&spool, &written[..written.len() - 9]).unwrap();
    let mut seen = Hosts::default();
    let (output, place) = open(true, &mut seen);
    assert_eq!(place, Some((owner(), "a.ke".parse().unwrap())));
    assert!(seen.contains(&"a.ke".parse().unwrap()) && !seen.contains(&"c.ke".parse().unwrap()));
    let mut to = sink(Kind::Pages, output);
    write(&mut to, "c.ke", 3);
    // A member did not answer: the file has what is there, and can be gone on with.
    assert_eq!(to.finish(&["b.ke: no answer".to_owned()]).unwrap_err().exit, Exit::Unavailable);
    assert!(fs::read(&path).unwrap() == whole && fs::read(&spool).unwrap() == written);
    finish(sink(Kind::Pages, open(true, &mut Hosts::default()).0));
    assert!(path.exists() && !spool.exists());
}

/// Rows of two surveys of one name go nowhere: what was written is taken back, and a file of before is what it was.
#[test]
fn rows_of_two_surveys_of_one_name_leave_no_file_and_no_row_behind() {
    let directory = tempfile::tempdir().unwrap();
    let row = |host: &str, creator: u8| {
        let mark = json!({"name": "unis", "creator": AccessPoint([creator; 32]), "labels": {}});
        object(&json!({"host": host, "surveys": [mark], "by_status": {}}).to_string())
    };
    let write = |path: &Path, format: Format, resume: bool, hosts: &[(&str, u8)]| {
        let filter = SurveyFilter::new(Some(&"unis".parse().unwrap()));
        let wanted = Wanted::Servers { filter, as_text: format != Format::Jsonl };
        let (output, _) = open(&args(path, format, resume), &servers::COLUMNS, false, &mut Hosts::default()).unwrap();
        let rows_at = file::rows_at(format, Some(path)).unwrap();
        Origin::new(origin::SERVERS, format, Some(&"unis".parse().unwrap()), &[]).write(&rows_at);
        let mut to = RowSink::new(Kind::Servers, To::Rows(Box::new(output)), Progress::new(0), wanted);
        for (host, creator) in hosts {
            assert!(to.row(owner(), row(host, *creator)).unwrap());
            to.host_ends().unwrap();
        }
        to.finish(&[])
    };
    let left = || fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect::<Vec<_>>();
    for format in [Format::Jsonl, Format::Csv, Format::Parquet] {
        let path = directory.path().join("rows");
        let several = write(&path, format, false, &[("a.ke", 1), ("b.ke", 2)]).unwrap_err();
        assert!(several.exit == Exit::Data && several.message.contains("several members have a survey unis"), "{several}");
        assert!(left().is_empty(), "{format:?}: {:?}", left());
        write(&path, format, false, &[("a.ke", 1)]).unwrap();
        let whole = fs::read(&path).unwrap();
        // A file that is gone on with has its rows of before; of a Parquet file they are all written anew beside it.
        write(&path, format, format != Format::Parquet, &[("b.ke", 2), ("c.ke", 1)]).unwrap_err();
        assert!(fs::read(&path).unwrap() == whole, "{format:?}");
        left().into_iter().for_each(|file| fs::remove_file(directory.path().join(file)).unwrap());
    }
}

#[tokio::test]
async fn a_file_is_noted_with_the_whole_creator_of_its_survey() {
    let node = FakeNode::start("127.0.0.1:0").await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    let survey = "universities".parse().ok();
    let asked = ServersArgs { survey, api: Some(node.url("/")), ..args(&path, Format::Jsonl, false) };
    export(&ExportCommand::Servers(asked.clone())).await.unwrap();
    let noted: Value = serde_json::from_str(&fs::read_to_string(origin::beside(&path)).unwrap()).unwrap();
    assert_eq!(noted["survey"], format!("universities@{}", access_point(0)));
    let written = fs::read_to_string(&path).unwrap();
    assert_eq!(written.lines().count(), 25);
    export(&ExportCommand::Servers(ServersArgs { resume: true, ..asked })).await.unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), written, "the same name goes on");
    node.end().await;
}

#[test]
fn a_csv_file_with_other_columns_is_not_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("servers.csv");
    let before = format!("access_point,host,other_json\n{OWNER},a.ke,{{}}\n");
    fs::write(&path, &before).unwrap();
    let opened = open(&args(&path, Format::Csv, true), &servers::COLUMNS, false, &mut Hosts::default());
    assert_eq!(opened.err().map(|why| why.exit), Some(Exit::Data));
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}
