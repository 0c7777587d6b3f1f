//! Questions and answers forwarded by a third member, where two members cannot reach each other.
//!
//! The asker seals the question with a signature, and the member asked seals the answer together with the digest of the question. So the
//! third member can drop either, but neither invent nor change them.
//!
//! Nor can it keep a question and deliver it later or twice: the member asked gives out a [`Token`] with each answer, takes only questions
//! that name a recent one of its own, and each of them once.

use super::{access_point::AccessPoint, message::MAX_MESSAGE};
use ed25519_dalek::{Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The longest question that is forwarded, in bytes of its encoding: what is wrapped around it fits into a message, too.
pub const MAX_FORWARDED: usize = MAX_MESSAGE - (1 << 10);

/// The domain separators of the signatures, so that none of them is valid for anything else.
const QUESTION_CONTEXT: &[u8] = b"nearcrawl forwarded question 1\0";
const ANSWER_CONTEXT: &[u8] = b"nearcrawl forwarded answer 1\0";

/// Says at which time a member was asked, by that member's own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Token {
    /// The process of the member that gave it out.
    pub process: u64,
    /// A period of that process's clock.
    pub period: u64,
}

/// A question that goes through a third member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardedQuestion {
    /// Who asks; it signs the question.
    pub from: AccessPoint,
    /// Who is asked.
    pub to: AccessPoint,
    /// The process of the asker: it never uses a number twice.
    pub process: u64,
    /// The number of the question.
    pub number: u64,
    /// The last token that the asker had of who is asked; any if it had none yet.
    pub token: Token,
    /// The [`super::message::Request`], encoded with postcard, at most [`MAX_FORWARDED`] bytes.
    pub request: Vec<u8>,
}

/// What is answered to a forwarded question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardedAnswer {
    /// The digest of the question ([`SealedQuestion::digest`]).
    pub question: [u8; 32],
    /// To be named in the next question.
    pub token: Token,
    /// The [`super::message::Response`], encoded with postcard; none if the question named a token that is over: it was not carried out
    /// and is to be sealed again with this one.
    pub response: Option<Vec<u8>>,
}

/// A question as it is sent: the signed bytes themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedQuestion {
    /// The [`ForwardedQuestion`], encoded with postcard.
    pub bytes: Vec<u8>,
    /// Ed25519 by the asker over a context and `bytes`.
    pub signature: Vec<u8>,
}

/// An answer as it is sent: the signed bytes themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedAnswer {
    /// The [`ForwardedAnswer`], encoded with postcard.
    pub bytes: Vec<u8>,
    /// Ed25519 by who was asked over a context and `bytes`.
    pub signature: Vec<u8>,
}

/// Why a third member passed no answer back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NotForwarded {
    /// It does not reach who is asked either, or had no answer from there in time.
    Unreachable,
    /// It passes on as much as it may at the moment.
    Busy,
    /// The question is not one that is forwarded, or was delivered before.
    Refused,
}

/// Why a sealed question or answer is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The bytes do not decode.
    #[error("the sealed message cannot be decoded")]
    Malformed,
    /// The signature is not that of its author.
    #[error("the seal is not that of the author")]
    BadSignature,
}

impl SealedQuestion {
    /// Seals a question with the asker's key.
    pub fn seal(question: &ForwardedQuestion, key: &SigningKey) -> SealedQuestion {
        let (bytes, signature) = seal(QUESTION_CONTEXT, question, key);
        SealedQuestion { bytes, signature }
    }

    /// What it says, whoever sealed it.
    pub fn read(&self) -> Result<ForwardedQuestion, SealError> {
        postcard::from_bytes(&self.bytes).map_err(|_| SealError::Malformed)
    }

    /// Whether the asker that it names sealed it.
    pub fn is_sealed_by(&self, asker: &AccessPoint) -> bool {
        is_sealed(QUESTION_CONTEXT, &self.bytes, &self.signature, asker)
    }

    /// By which the answer names it.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.bytes).into()
    }
}

impl SealedAnswer {
    /// Seals an answer with the key of who was asked.
    pub fn seal(answer: &ForwardedAnswer, key: &SigningKey) -> SealedAnswer {
        let (bytes, signature) = seal(ANSWER_CONTEXT, answer, key);
        SealedAnswer { bytes, signature }
    }

    /// What it says, if this member sealed it.
    pub fn open(&self, asked: &AccessPoint) -> Result<ForwardedAnswer, SealError> {
        if !is_sealed(ANSWER_CONTEXT, &self.bytes, &self.signature, asked) {
            return Err(SealError::BadSignature);
        }
        postcard::from_bytes(&self.bytes).map_err(|_| SealError::Malformed)
    }
}

fn seal(context: &[u8], what: &impl Serialize, key: &SigningKey) -> (Vec<u8>, Vec<u8>) {
    #[expect(clippy::expect_used, reason = "postcard writes it into a growing vector")]
    let bytes = postcard::to_stdvec(what).expect("it always encodes");
    let signature = key.sign(&[context, &bytes].concat()).to_bytes().to_vec();
    (bytes, signature)
}

fn is_sealed(context: &[u8], bytes: &[u8], signature: &[u8], author: &AccessPoint) -> bool {
    let (Ok(key), Ok(signature)) = (VerifyingKey::from_bytes(&author.0), signature.try_into()) else { return false };
    key.verify(&[context, bytes].concat(), &signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_its_author_its_bytes_and_its_kind_only() {
        let (asker, asked) = (SigningKey::from_bytes(&[3; 32]), SigningKey::from_bytes(&[4; 32]));
        let name = |key: &SigningKey| AccessPoint(key.verifying_key().to_bytes());
        let (from, to) = (name(&asker), name(&asked));
        let token = Token { process: 7, period: 9 };
        let question = ForwardedQuestion { from, to, process: 5, number: 1, token, request: vec![21] };
        let sealed = SealedQuestion::seal(&question, &asker);
        assert_eq!((sealed.read(), sealed.is_sealed_by(&from), sealed.is_sealed_by(&to)), (Ok(question.clone()), true, false));
        let other = SealedQuestion::seal(&ForwardedQuestion { number: 2, ..question }, &asker);
        let changed = SealedQuestion { bytes: other.bytes.clone(), ..sealed.clone() };
        assert!(!changed.is_sealed_by(&from));
        let answer = ForwardedAnswer { question: sealed.digest(), token, response: Some(vec![0]) };
        let answered = SealedAnswer::seal(&answer, &asked);
        assert_eq!((answered.open(&to), answered.open(&from)), (Ok(answer), Err(SealError::BadSignature)));
        let as_answer = SealedAnswer { bytes: sealed.bytes.clone(), signature: sealed.signature.clone() };
        assert_eq!(as_answer.open(&from), Err(SealError::BadSignature), "a question's seal is not an answer's");
        assert_ne!(sealed.digest(), other.digest());
    }
}
