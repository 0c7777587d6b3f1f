//! Tests that bulk WHOIS is read as its registries write it, and that no personal data is taken from it.

use super::*;

/// Objects as AFRINIC, APNIC and the RIPE NCC write them. All names are made up.
const RPSL: &[u8] = b"#\n# Terms of use.\n#\n\n\
    as-block:       AS64496 - AS64511\norg:            ORG-RIR-LAB\nsource:         RIPE\n\n\
    inetnum:        10.1.0.0 - 10.1.255.255\nnetname:        MUSEUM-NET\ndescr:          The Museum of Paper\n\
    descr:          in Vienna\ncountry:        at # Austria\norg:            ORG-MUSEUM-RIPE\nadmin-c:        AA1-RIPE\n\
    status:         ALLOCATED PA\nmnt-by:         RIPE-NCC-HM-MNT\nmnt-by:         MUSEUM-MNT\ncreated:        2001-02-03T04:05:06Z\n\
    last-modified:  2024-05-06T07:08:09Z\nsource:         RIPE # Filtered\nremarks:        a line\n                that goes on\n+\n\tand on\n\n\
    % Tags relating to '10.1.2.0 - 10.1.2.2'\n\n\
    inetnum:        10.1.2.0 - 10.1.2.2\r\nnetname:        KIOSK\r\ncountry:        DE\r\nmnt-by:         RIPE-NCC-HM-MNT, KIOSK-MNT\r\n\
    changed:        somebody@example.org 20030303\r\nsource:         RIPE\r\n\r\n\
    inet6num:       2001:db8::/32\nnetname:        CAF\xc9-NET\ncountry:        AT\norg:\n                ORG-MUSEUM-RIPE\nsource:         RIPE\n\n\
    inetnum:        0.0.0.0 - 255.255.255.255\nnetname:        IANA-BLK\ncountry:        EU\nstatus:         ALLOCATED UNSPECIFIED\nsource:         RIPE\n\n\
    person:         Ada Secret\naddress:        Hidden Street 1\nphone:          +43 1 2345678\nnic-hdl:        AA1-RIPE\nsource:         RIPE\n\n\
    organisation:   ORG-MUSEUM-RIPE\norg-name:       The Museum of Paper\ncountry:        AT\naddress:        Hidden Street 1\n\
    e-mail:         ada@example.org\nsource:         RIPE\n";

const LACNIC: &str = "aut-num: 64500\nowner:   Example\ncountry: MX\nsource:  LACNIC\n\n\
    inetnum:    10.2.16/20\nstatus:     reallocated\nowner:      Cantina Ejemplo\ncity:\ncountry:    AR\nowner-c:\n\
    inetnum-up: 10.2/16\ncreated:    1999-03-12\nchanged:    1999-03-12\nsource:     LACNIC\n\n\
    inetnum:    2001:db8:2000::/48\nstatus:     reallocated\nownerid:    MX-EJEM-LACNIC\nowner:      Ejemplo\ncountry:    MX\nsource:     LACNIC\n";

const ARIN: &str = "\n\nASHandle:       AS64501\nOrgID:          DINER\nASName:         DINER-AS\nSource:         ARIN\n\n\
    POCHandle:      AS1-ARIN\nIsRole:         N\nLastName:       Secret\nFirstName:      Ada\nCountry:        CA\nMailbox:        ada@example.org\nSource:         ARIN\n\n\
    OrgID:          DINER\nOrgName:        The Diner\nStreet:         1 Hidden Street\nCountry:        US\nSource:         ARIN\n\n\
    NetHandle:      NET-10-3-0-0-1\nOrgID:          DINER\nParent:         NET-10-0-0-0-0\nNetName:        DINERNET\n\
    NetRange:       10.3.0.0 - 10.3.2.255\nNetType:        assignment\nRegDate:        1991-04-09\nUpdated:        1991-04-10\nSource:         ARIN\n\n\
    NetHandle:      NET-10-0-0-0-0\nOrgID:          ARIN\nNetName:        NET10\nNetRange:       10.0.0.0 - 10.255.255.255\nNetType:        allocation\nSource:         ARIN\n\n\
    V6NetHandle:    NET6-2001-DB8-1\nOrgID:          DINER\nNetName:        DINER-V6\nNetRange:       2001:DB8:3000:: - 2001:DB8:3000:FFFF:FFFF:FFFF:FFFF:FFFF\n\
    NetType:        reallocation\nUpdated:        2002-11-14\nSource:         ARIN\n";

fn read(bytes: &[u8]) -> (ReadReport, Hierarchy) {
    let mut builder = Builder::new();
    let report = builder.read_whois("whois", bytes).unwrap();
    (report, builder.finish().unwrap())
}

/// Where an address lies: subnet, registry, country, id and name of the organisation.
fn home(hierarchy: &Hierarchy, address: &str) -> (String, String, String, String, String) {
    let position = hierarchy.locate(ip(address)).unwrap();
    let record = hierarchy.organisation_record(hierarchy.organisation(position));
    (
        hierarchy.subnet(position).to_string(),
        hierarchy.registry(position).to_owned(),
        hierarchy.country(position).to_owned(),
        record.id.to_owned(),
        record.name.unwrap_or_default().to_owned(),
    )
}

fn five(texts: [&str; 5]) -> (String, String, String, String, String) {
    let [a, b, c, d, e] = texts.map(str::to_owned);
    (a, b, c, d, e)
}

#[test]
fn rpsl_objects_of_three_registries_are_read() {
    let (report, hierarchy) = read(RPSL);
    assert_eq!((report.used, report.unheld, report.skipped, report.bad_lines()), (3, 1, 2, 0), "{report}");
    assert_eq!((report.registry.as_deref(), report.date.as_deref()), (Some("ripencc"), Some("20240506")));
    assert_eq!(report.records["inetnum"], 3);
    assert_eq!(home(&hierarchy, "10.1.9.9"), five(["10.1.0.0/16", "ripencc", "AT", "ORG-MUSEUM-RIPE", "The Museum of Paper"]));
    // Three addresses are no prefix; the registry's own maintainer is nobody's.
    assert_eq!(home(&hierarchy, "10.1.2.1"), five(["10.1.2.0/31", "ripencc", "DE", "KIOSK-MNT", "KIOSK"]));
    assert_eq!(home(&hierarchy, "10.1.2.2"), five(["10.1.2.2/32", "ripencc", "DE", "KIOSK-MNT", "KIOSK"]));
    assert_eq!(home(&hierarchy, "2001:db8::1"), five(["2001:db8::/32", "ripencc", "AT", "ORG-MUSEUM-RIPE", "The Museum of Paper"]));
    let parent = hierarchy.parent(hierarchy.locate(ip("10.1.2.2")).unwrap()).unwrap();
    assert_eq!(hierarchy.subnet(parent), subnet("10.1.0.0/16"));
    assert_eq!(hierarchy.sources(), [Source { name: "ripencc-whois".into(), date: "20240506".into() }]);
}

#[test]
fn lacnics_abbreviated_prefixes_and_owners_are_read() {
    let (report, hierarchy) = read(LACNIC.as_bytes());
    assert_eq!((report.used, report.skipped, report.bad_lines()), (2, 1, 0), "{report}");
    assert_eq!(home(&hierarchy, "10.2.17.0"), five(["10.2.16.0/20", "lacnic", "AR", "Cantina Ejemplo", ""]));
    assert_eq!(home(&hierarchy, "2001:db8:2000::9"), five(["2001:db8:2000::/48", "lacnic", "MX", "MX-EJEM-LACNIC", ""]));
}

#[test]
fn arins_networks_have_the_country_of_their_organisation() {
    let (report, hierarchy) = read(ARIN.as_bytes());
    assert_eq!((report.used, report.unheld, report.skipped, report.bad_lines()), (2, 1, 2, 0), "{report}");
    assert_eq!(home(&hierarchy, "10.3.1.1"), five(["10.3.0.0/23", "arin", "US", "DINER", "The Diner"]));
    assert_eq!(home(&hierarchy, "10.3.2.1"), five(["10.3.2.0/24", "arin", "US", "DINER", "The Diner"]));
    assert_eq!(home(&hierarchy, "2001:db8:3000::"), five(["2001:db8:3000::/48", "arin", "US", "DINER", "The Diner"]));
    assert_eq!(hierarchy.locate(ip("10.9.0.0")), None, "what ARIN delegates from is nobody's");
}

#[test]
fn no_personal_data_enters() {
    let mut builder = Builder::new();
    for text in [RPSL, ARIN.as_bytes(), LACNIC.as_bytes()] {
        builder.read_whois("whois", text).unwrap();
    }
    let hierarchy = builder.finish().unwrap();
    let mut known = String::new();
    for organisation in (0..hierarchy.organisations()).map(OrganisationId) {
        let record = hierarchy.organisation_record(organisation);
        known += &format!("{} {}\n", record.id, record.name.unwrap_or_default());
    }
    for secret in ["Ada", "Secret", "Hidden", "Vienna", "2345678", "example.org", "AA1", "AS1-ARIN"] {
        assert!(!known.contains(secret), "{secret} in {known}");
    }
}

#[test]
fn latin_1_is_read_where_a_name_has_it() {
    let text = b"inetnum: 10.1.0.0 - 10.1.0.255\nnetname: S\xc3O-PAULO\nmnt-by: NET-MNT\nsource: LAB\n\ninetnum: 10.2.0.0 - 10.2.0.255\nnetname: Z\xc3\xbcrich\nmnt-by: ZRH-MNT\nsource: LAB\n";
    let (_, hierarchy) = read(text);
    assert_eq!(home(&hierarchy, "10.1.0.1").4, "SÃO-PAULO");
    assert_eq!(home(&hierarchy, "10.2.0.1").4, "Zürich");
}

#[test]
fn national_registrars_are_not_the_holders_of_a_country() {
    let network =
        |n: u32| format!("inetnum: 10.0.{n}.0 - 10.0.{n}.255\nnetname: N{n}\ncountry: JP\nmnt-by: MAINT-JPNIC\nsource: APNIC\n\n");
    let (_, hierarchy) = read((0..20).map(network).collect::<String>().as_bytes());
    assert_eq!((hierarchy.len(), hierarchy.organisations()), (20, 20));
}
