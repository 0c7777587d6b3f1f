//! Conversion between access points and libp2p's peer ids.

use libp2p::{PeerId, identity};
use nearcrawl_model::access_point::AccessPoint;

/// The peer id of an access point; none if its 32 bytes are no Ed25519 key.
pub fn peer_id_of(access_point: AccessPoint) -> Option<PeerId> {
    let key = identity::ed25519::PublicKey::try_from_bytes(&access_point.0).ok()?;
    Some(identity::PublicKey::from(key).to_peer_id())
}

/// The access point of a peer id; none if the peer's key is not an Ed25519 key.
pub fn access_point_of(peer: &PeerId) -> Option<AccessPoint> {
    peer.to_base58().parse().ok()
}

/// The access point that has this secret Ed25519 seed.
pub fn access_point_of_seed(seed: [u8; 32]) -> AccessPoint {
    AccessPoint(ed25519_dalek::SigningKey::from_bytes(&seed).verifying_key().to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_points_and_peer_ids_are_the_same_names() {
        for number in 0..20 {
            let seed = [number; 32];
            let access_point = access_point_of_seed(seed);
            let peer = peer_id_of(access_point).unwrap();
            assert_eq!(access_point_of(&peer), Some(access_point));
            assert_eq!(peer.to_base58(), access_point.to_string());
            let keypair = identity::Keypair::ed25519_from_bytes(seed).unwrap();
            assert_eq!(keypair.public().to_peer_id(), peer, "libp2p signs with the same key as the claims");
        }
    }

    #[test]
    fn a_peer_with_another_kind_of_key_is_no_access_point() {
        assert_eq!(access_point_of(&PeerId::random()), None);
    }
}
