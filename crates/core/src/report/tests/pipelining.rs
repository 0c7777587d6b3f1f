//! Tests of what is requested, and reported, while a page is read.

use super::*;

const PAGES: [&str; 3] = ["http://a.ke/1", "http://a.ke/2", "http://a.ke/3"];

/// The start page of a.ke was read and named three pages, the first of which is under way.
fn first_of_three(min_delay: Millis) -> Played {
    let politeness = Politeness { min_delay, factor: 0, ..settings().politeness };
    let mut played = Played::new(Settings { politeness, ..settings() }, &[]);
    played.seed("http://a.ke/");
    for links in [&[][..], &PAGES] {
        assert!(played.asks(60_000).is_some());
        played.web_answers(links);
    }
    assert_eq!(played.asks(60_000).map(|(url, _)| url).as_deref(), Some(PAGES[0]));
    played
}

impl Played {
    /// A page of a.ke is here.
    fn lands(&mut self) {
        self.handle(Event::BodyReceived { address: self.names[&host("a.ke")], took: 20 });
    }

    /// What is under way, the oldest first.
    fn asked_for(&self) -> Vec<&str> {
        self.fetches.iter().map(|order| order.url.as_str()).collect()
    }

    /// The oldest of what is under way is read.
    fn oldest_is_read(&mut self) {
        let oldest = self.fetches.remove(0);
        self.fetches.push(oldest);
        self.web_answers(&[]);
    }
}

#[test]
fn a_server_that_needs_no_rest_has_one_page_read_and_one_on_its_way_and_no_more() {
    let mut played = first_of_three(0);
    played.lands();
    assert_eq!(played.asked_for(), PAGES[..2]);
    let state =
        |played: &Played, page: &str| played.crawler.view().why(&Subject::Url(url(page)), &AddressPolicy::default()).state_text.unwrap();
    assert_eq!(state(&played, PAGES[0]), "was fetched and is being parsed");
    assert_eq!(state(&played, PAGES[1]), "is being fetched");
    played.lands();
    assert_eq!(played.asked_for(), PAGES[..2], "the page before it is not read yet");
    played.oldest_is_read();
    assert_eq!(played.asked_for(), PAGES[1..2]);
    played.lands();
    assert_eq!(played.asked_for(), PAGES[1..]);
    played.finish(&[]);
    let record = &played.crawler.view().servers(None, 1).servers[0];
    assert_eq!((record.pages, record.known, record.accounted()), (4, 4, 4));
}

#[test]
fn a_server_that_must_rest_is_left_alone_while_its_page_is_read() {
    let mut played = first_of_three(1_000);
    played.lands();
    played.pass(5_000);
    assert_eq!(played.asked_for(), PAGES[..1]);
    played.oldest_is_read();
    assert!(played.asked_for().is_empty());
    assert_eq!(played.next_request(5_000).map(|(waited, ..)| waited), Some(1_000));
}

#[test]
fn a_challenge_that_only_reading_shows_lets_the_server_rest_after_what_is_on_its_way() {
    let mut played = first_of_three(0);
    played.lands();
    let second = played.fetches.pop().unwrap();
    played.answers(FetchOutcome::Failed(FetchError::Challenged), None);
    played.fetches.push(second);
    played.answers(FetchOutcome::Status(404), None);
    assert_eq!(played.next_request(20_000), None);
    assert!(played.next_request(60_000).is_some());
}
