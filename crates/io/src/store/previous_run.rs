//! Records of the previous run: pages and URL texts by (site, fingerprint), kept until the next run ends.

use super::columns::Column;
use super::{database::Database, error::StoreError, journal::ReadFault};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    links::{Link, Links},
    previous_run::{PreviousPage, PreviousRow, PreviousVersion},
    url::PageUrl,
};
use rocksdb::{DB, WriteBatch};

const PAGE: u8 = 0;
const TEXT: u8 = 1;

/// The key: site and fingerprint, big endian, so that a site is one range; then what it is.
fn key(site: u64, of: Fingerprint, kind: u8) -> [u8; 17] {
    let mut key = [kind; 17];
    key[..16].copy_from_slice(&super::seen::key(site, of));
    key
}

/// Stores rows of a site's previous run.
pub(super) fn put(database: &mut Database, site: u64, rows: &[PreviousRow]) -> Result<(), StoreError> {
    database.make_writable()?;
    let mut write = WriteBatch::default();
    let previous = Column::PreviousRun.of(database.db()?);
    for row in rows {
        match row {
            PreviousRow::Text(of, text) => write.put_cf(previous, key(site, *of, TEXT), text),
            PreviousRow::Page(of, page) => {
                // postcard writes any page into a growing vector; a page that it did not write is as one that is not known.
                if let Ok(bytes) = postcard::to_stdvec(page) {
                    write.put_cf(previous, key(site, *of, PAGE), bytes);
                }
            }
        }
    }
    database.write(write)
}

fn page(db: &DB, site: u64, of: Fingerprint) -> Result<Option<PreviousPage>, ReadFault> {
    let found = db.get_pinned_cf(Column::PreviousRun.of(db), key(site, of, PAGE))?;
    let read = |bytes: rocksdb::DBPinnableSlice<'_>| postcard::from_bytes(&bytes);
    found.map(read).transpose().map_err(|_| ReadFault::Nonsense("a page of a run before cannot be read"))
}

/// A page with its links by name; those whose names were not noted are left out.
pub(super) fn page_with_links(db: &DB, site: u64, of: Fingerprint) -> Result<Option<PreviousVersion>, ReadFault> {
    let Some(page) = page(db, site, of)? else { return Ok(None) };
    let prints = || page.children.iter().chain(&page.elsewhere);
    let keys: Vec<_> = prints().map(|print| key(site, *print, TEXT)).collect();
    let previous = Column::PreviousRun.of(db);
    let texts = db.multi_get_cf(keys.iter().map(|key| (previous, key)));
    let read = |(fingerprint, text): (&Fingerprint, Result<Option<Vec<u8>>, rocksdb::Error>)| {
        let text = text.map_err(ReadFault::from).transpose()?;
        let url = text.map(|text| std::str::from_utf8(&text).ok().and_then(|text| PageUrl::parse(text).ok()));
        let nonsense = ReadFault::Nonsense("a URL of a run before cannot be read");
        Some(url.and_then(|url| Ok(Link { url: url.ok_or(nonsense)?, fingerprint: *fingerprint })))
    };
    let links = prints().zip(texts).filter_map(read).collect::<Result<Links, _>>()?;
    Ok(Some(PreviousVersion { page, links }))
}

/// Puts into a batch that these sites are forgotten.
pub(super) fn forget(db: &DB, write: &mut WriteBatch, first: u64, last: u64) {
    let previous = Column::PreviousRun.of(db);
    let (begin, end) = (first.to_be_bytes(), last.checked_add(1).map(u64::to_be_bytes));
    match end {
        Some(end) => write.delete_range_cf(previous, begin.as_slice(), end.as_slice()),
        // There is no site with this number; a range cannot end behind it.
        None => write.delete_range_cf(previous, begin.as_slice(), [0xff; 18].as_slice()),
    }
}
