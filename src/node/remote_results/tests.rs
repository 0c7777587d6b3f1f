//! Tests that a reader gets what a real member says, and an understandable reason if it says nothing.

use super::*;
use crate::io::swarm::{Swarm, SwarmCommand, SwarmConfig, SwarmEvent, SwarmSecrets};
use nearcrawl_model::{access_point::AccessPoint, fingerprint::FingerprintKey, summary::Summary};
use std::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_gets_the_results_of_a_member_or_its_refusal() {
    let config = SwarmConfig {
        listen: vec!["/ip4/127.0.78.1/tcp/0".to_owned()],
        secrets: Some(SwarmSecrets { swarm: [7; 16], fingerprint_key: FingerprintKey([8; 16]) }),
        ..SwarmConfig::default()
    };
    let (handle, mut events) = Swarm::start(config, [1; 32]).unwrap();
    let (address_told, address) = tokio::sync::oneshot::channel();
    let results = SwarmResults {
        answered_by: AccessPoint([1; 32]),
        exact: true,
        in_transition_text: None,
        oldest_roll_up_age_ms: 7,
        covers: Vec::new(),
        summary: Summary::default(),
        consistent_age_ms: None,
    };
    let mut answers = vec![PublicResponse::Refused("members only\u{1b}[2J".to_owned()), PublicResponse::Results(Box::new(results.clone()))];
    let member = tokio::spawn(async move {
        let mut address_told = Some(address_told);
        while let Some(event) = events.recv().await {
            match event {
                SwarmEvent::Listening { address } => {
                    if let Some(told) = address_told.take() {
                        told.send(address).unwrap();
                    }
                }
                SwarmEvent::PublicAsked { ticket, .. } => {
                    let response = answers.pop().unwrap();
                    handle.tell(SwarmCommand::AnswerPublic { ticket, response }).unwrap();
                    if answers.is_empty() {
                        // The answer is on its way; the reader hangs up when it has it.
                        return (handle, events);
                    }
                }
                _ => {}
            }
        }
        panic!("the swarm ended early");
    });
    let address = tokio::time::timeout(MEMBER_TIMEOUT, address).await.unwrap().unwrap();
    assert_eq!(results_of_member(&format!(" {address}\n"), MEMBER_TIMEOUT).await, Ok(results));
    let refused = results_of_member(&address, MEMBER_TIMEOUT).await.unwrap_err();
    assert_eq!(refused, NoResults::Refused { address: address.clone(), reason: "members only[2J".to_owned() });
    drop(member.await.unwrap());
}

#[tokio::test]
async fn nobody_there_is_said_soon_and_in_one_line() {
    let begun = Instant::now();
    let why = results_of_member("/ip4/127.0.78.2/tcp/9", MEMBER_TIMEOUT).await.unwrap_err();
    assert!(begun.elapsed() < MEMBER_TIMEOUT, "a refused connection is not waited for");
    let text = why.to_string();
    assert_eq!(
        text,
        "the member at /ip4/127.0.78.2/tcp/9 cannot be reached: nothing listens at that port (connection refused): is its daemon running, and \
         this its port?"
    );
}

#[tokio::test]
async fn somebody_who_never_answers_is_not_waited_for_for_ever() {
    let listener = tokio::net::TcpListener::bind("127.0.78.3:0").await.unwrap();
    let address = format!("/ip4/127.0.78.3/tcp/{}", listener.local_addr().unwrap().port());
    let why = results_of_member(&address, Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(why, NoResults::NoAnswer { address, failure: "did not answer in time".to_owned() });
}

#[tokio::test]
async fn what_is_no_address_is_not_dialled() {
    for address in ["", "example.org:4817", "/ip4/nonsense/tcp/1"] {
        assert!(matches!(results_of_member(address, MEMBER_TIMEOUT).await, Err(NoResults::BadAddress { .. })), "{address:?}");
    }
}

#[tokio::test]
async fn what_answers_there_and_is_no_such_member_is_said_with_what_to_do() {
    let member = |keys: u8, pre_shared_key| {
        let secrets = Some(SwarmSecrets { swarm: [7; 16], fingerprint_key: FingerprintKey([8; 16]) });
        let config = SwarmConfig { listen: vec!["/ip4/127.0.78.4/tcp/0".to_owned()], secrets, pre_shared_key, ..SwarmConfig::default() };
        Swarm::start(config, [keys; 32]).unwrap()
    };
    let (_handle, mut events) = member(4, None);
    let Some(SwarmEvent::Listening { address }) = events.recv().await else { panic!("it does not listen") };
    let (place, own) = address.split_once("/p2p/").unwrap();
    let other = crate::io::swarm::peer_id_of(crate::io::swarm::access_point_of_seed([5; 32])).unwrap();
    let said = results_of_member(&format!("{place}/p2p/{other}"), MEMBER_TIMEOUT).await.unwrap_err().to_string();
    assert!(said.contains(&format!("another peer id, {own}")) && said.contains("/p2p/ in the address"), "{said}");

    let (_handle, mut events) = member(6, Some([9; 32]));
    let Some(SwarmEvent::Listening { address }) = events.recv().await else { panic!("it does not listen") };
    let said = results_of_member(&address, MEMBER_TIMEOUT).await.unwrap_err().to_string();
    assert!(said.contains("has a pre-shared key and this access point has none") && !said.contains("Failed to negotiate"), "{said}");
}
