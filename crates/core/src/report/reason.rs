//! Reasons why a subnet stays or was handed over, as people read them.
//!
//! Journals hold these reasons as sentences in the words of commit 3107d04, as does what moves with a subnet. They are put into
//! today's words here, when they are shown, so that stored bytes, and the digests over them, stay what they were.

/// A reason as it is shown, from the one that is stored.
pub(super) fn shown(stored: &str) -> String {
    compared(stored).unwrap_or_else(|| {
        let words = [
            ("neither rewarded nor penalised: its access took", "no change: its access took"),
            ("rewarded: its access took", "keep here: its access took"),
            ("penalised: its access took", "better elsewhere: its access took"),
            ("is too busy:", "is overloaded: busy"),
            ("of its time, the swarm", "of its time, the average of the swarm"),
            ("its operator gave it away", "moved by its operator"),
            ("a request takes ", "a request: "),
            (" here, and there is nothing to compare it with", " here, no other member to compare with"),
        ];
        words.iter().fold(stored.to_owned(), |text, (old, new)| text.replacen(old, new, 1))
    })
}

/// `penalised: a request takes 134 ms here and would take 90 ms at X, as far as is predicted` → `better elsewhere: 134 ms a request,
/// estimated 90 ms at X`; none for any other sentence.
fn compared(stored: &str) -> Option<String> {
    let (news, rest) = stored.strip_prefix("the network changed; ").map_or(("", stored), |rest| ("the network changed; ", rest));
    let (verdict, rest) = rest.split_once(": a request takes ")?;
    let verdict = match verdict {
        "rewarded" => "keep here",
        "penalised" => "better elsewhere",
        _ => return None,
    };
    let (here, rest) = rest.split_once(" here and would take ")?;
    let (there, rest) = rest.split_once(" at ")?;
    let (member, rest) = rest.split_once(", ")?;
    let (known, state) = [("as far as is predicted", "estimated"), ("as it did before", "measured before")]
        .into_iter()
        .find_map(|(old, new)| rest.strip_prefix(old).map(|state| (new, state)))?;
    Some(format!("{news}{verdict}: {here} a request, {known} {there} at {member}{state}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_reasons_are_shown_in_todays_words() {
        for (stored, words) in [
            (
                "penalised: a request takes 134 ms here and would take 90 ms at …8dWcTn1V, as far as is predicted (state 2 of 5)",
                "better elsewhere: 134 ms a request, estimated 90 ms at …8dWcTn1V (state 2 of 5)",
            ),
            (
                "the network changed; rewarded: a request takes 90 ms here and would take 1.3 s at …8dWcTn1V, as it did before",
                "the network changed; keep here: 90 ms a request, measured before 1.3 s at …8dWcTn1V",
            ),
            (
                "a request takes 90 ms here, and there is nothing to compare it with",
                "a request: 90 ms here, no other member to compare with",
            ),
            (
                "…8dWcTn1V is too busy: 80 % of its time, the swarm 20 %",
                "…8dWcTn1V is overloaded: busy 80 % of its time, the average of the swarm 20 %",
            ),
            ("its operator gave it away", "moved by its operator"),
            (
                "penalised: its access took 2.0 s against 1.0 s on average here",
                "better elsewhere: its access took 2.0 s against 1.0 s on average here",
            ),
            ("anything else", "anything else"),
        ] {
            assert_eq!(shown(stored), words);
        }
    }
}
