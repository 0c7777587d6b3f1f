//! `swarm`: makes a root key, and invites and expels members.
//!
//! The key is used here only; no daemon needs it.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    json,
    run::{ConfigArgs, of_node},
    table::{Style, Table},
};
use crate::node::{
    self,
    api::{AdmissionBody, TakenInView},
    clock,
    state::admission_files::{self, CERTIFICATE_FILE, IssuingKey},
};
use clap::{Args, Subcommand};
use ed25519_dalek::SigningKey;
use nearcrawl_model::{
    access_point::AccessPoint,
    admission::{
        Admission, AdmissionError, AdmissionMode, AdmissionView, Certificate, CertificateView, Expulsion, ExpulsionView, Issuer, RootKey,
        SignedAdmission, TEXT_HEAD,
    },
    time::{Millis, WallTime},
};
use serde::Serialize;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Shown under `swarm --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl swarm init --out ROOT.key\n  \
    nearcrawl swarm invite --key ROOT.key 12D3KooW… --inviter\n  \
    nearcrawl swarm join invitation.txt\n  \
    nearcrawl swarm members\n  \
    nearcrawl swarm expel 12D3KooW… --key ROOT.key --reason leaked --out out.txt\n  \
    nearcrawl swarm tell out.txt\n\n\
    With `mode = \"invite\"` in section [admission] only who has a certificate is a member. The root key signs certificates; keep it on no machine that runs a daemon.";

/// Shown under `swarm init --help`.
const INIT_EXAMPLES: &str = "Examples:\n  \
    nearcrawl swarm init --out ROOT.key\n\n\
    A file that is there is not touched. Who has the key admits and expels members of the swarm: keep it offline, and a copy of it.";

/// Shown under `swarm invite --help`.
const INVITE_EXAMPLES: &str = "Examples:\n  \
    nearcrawl swarm invite --key ROOT.key 12D3KooW… > invitation.txt\n  \
    nearcrawl swarm invite --key ROOT.key 12D3KooW… --inviter --expires 2y\n  \
    nearcrawl swarm invite --key /var/lib/nearcrawl/key 12D3KooW…\n\n\
    `nearcrawl init` there prints the peer id. An inviter signs with the key of its daemon (the last example), and answers for whom it invites: if it is expelled, so are they.";

/// Shown under `swarm join --help`.
const JOIN_EXAMPLES: &str = "Examples:\n  \
    nearcrawl swarm join invitation.txt\n  \
    nearcrawl swarm join invitation.txt --config node.toml\n  \
    nearcrawl swarm join nearcrawl-admission-1:2rFB…\n\n\
    A daemon that runs shows the certificate after SIGHUP (systemctl kill -s HUP nearcrawl); else from its next start on.";

/// Shown under `swarm members --help`.
const MEMBERS_EXAMPLES: &str = "Examples:\n  \
    nearcrawl swarm members\n  \
    nearcrawl swarm members --json | jq -r .expulsions[].access_point";

/// Shown under `swarm expel --help`.
const EXPEL_EXAMPLES: &str = "Examples:\n  \
    nearcrawl swarm expel 12D3KooW… --key ROOT.key --reason leaked --out out.txt\n  \
    nearcrawl swarm expel 12D3KooW… --key /var/lib/nearcrawl/key --reason left\n\n\
    The root key expels anybody, with all whom it invited, and for ever: who is to come back needs a new key. With --out it is signed where the root key is, \
    and `swarm tell` gives it to a running member, which tells all others. An inviter takes back what it signed itself (mode \"invite\"): who has a \
    certificate by another inviter, or by the root key, stays a member.";

/// Shown under `swarm tell --help`.
const TELL_EXAMPLES: &str = "Examples:\n  \
    nearcrawl swarm tell out.txt\n  \
    nearcrawl swarm tell nearcrawl-admission-1:2rFB…\n\n\
    The running member stores it and tells all others. So an expulsion that `swarm expel --out` signed takes effect, and a certificate by which an inviter is \
    none any more (`swarm invite` without --inviter).";

/// The commands about who is a member.
#[derive(Subcommand, Clone, Debug)]
pub enum SwarmCommand {
    /// Make the root key of a swarm to which members are invited
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
    /// Sign a certificate, by which an access point may be a member
    #[command(after_help = INVITE_EXAMPLES)]
    Invite(InviteArgs),
    /// Put a certificate into the state directory
    #[command(after_help = JOIN_EXAMPLES)]
    Join(JoinArgs),
    /// List who was invited by whom and until when, and who was expelled
    #[command(after_help = MEMBERS_EXAMPLES)]
    Members(ApiArgs),
    /// Expel a member, with all whom it invited
    #[command(after_help = EXPEL_EXAMPLES)]
    Expel(ExpelArgs),
    /// Give an expulsion or a certificate to a running member
    #[command(after_help = TELL_EXAMPLES)]
    Tell(TellArgs),
}

/// The arguments of `swarm init`.
#[derive(Args, Clone, Debug)]
pub struct InitArgs {
    /// The file for the root key
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print the root key's public half as JSON
    #[arg(long)]
    json: bool,
}

/// With whose key is signed.
#[derive(Args, Clone, Debug)]
struct SignArgs {
    /// The root key, or the key in the state directory of an inviter
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The inviter's own certificate [default: the file `certificate` beside its key]
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
}

/// The arguments of `swarm invite`.
#[derive(Args, Clone, Debug)]
pub struct InviteArgs {
    /// Who is invited
    #[arg(value_name = "PEER_ID")]
    member: String,
    #[command(flatten)]
    sign: SignArgs,
    /// It may invite others (with the root key only)
    #[arg(long)]
    inviter: bool,
    /// For how long, like 12h, 90d or 1y
    #[arg(long, value_name = "TIME", default_value = "1y", value_parser = length)]
    expires: Millis,
    /// What people call it
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// Write the certificate there
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print what was signed as JSON
    #[arg(long)]
    json: bool,
}

/// The arguments of `swarm join`.
#[derive(Args, Clone, Debug)]
pub struct JoinArgs {
    /// The certificate, or a file with it
    #[arg(value_name = "FILE|TEXT")]
    certificate: String,
    #[command(flatten)]
    config: ConfigArgs,
    /// Print what it says as JSON
    #[arg(long)]
    json: bool,
}

/// The arguments of `swarm expel`.
#[derive(Args, Clone, Debug)]
pub struct ExpelArgs {
    /// Who is expelled
    #[arg(value_name = "PEER_ID")]
    member: String,
    #[command(flatten)]
    sign: SignArgs,
    /// Why: it is told to all
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Write it there and ask no daemon; `swarm tell` gives it to one
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    api: ApiArgs,
}

/// The arguments of `swarm tell`.
#[derive(Args, Clone, Debug)]
pub struct TellArgs {
    /// What was signed, or a file with it
    #[arg(value_name = "FILE|TEXT")]
    statement: String,
    #[command(flatten)]
    api: ApiArgs,
}

/// The answer of `swarm init --json`.
#[derive(Serialize)]
struct RootView {
    swarm: RootKey,
    key_file: PathBuf,
}

/// The answers of `swarm invite --json` and `swarm join --json`.
#[derive(Serialize)]
struct InvitationView {
    swarm: RootKey,
    access_point: AccessPoint,
    label: String,
    may_invite: bool,
    invited_by: Option<AccessPoint>,
    issued_at: WallTime,
    expires_at: WallTime,
    statement: String,
    written: Option<PathBuf>,
}

/// The answer of `swarm expel --out FILE --json`.
#[derive(Serialize)]
struct SignedExpulsionView {
    swarm: RootKey,
    access_point: AccessPoint,
    expelled_by: Option<AccessPoint>,
    expelled_at: WallTime,
    reason_text: String,
    statement: String,
    written: PathBuf,
}

/// Carries a command about who is a member out.
pub async fn swarm(command: SwarmCommand, style: Style) -> Result<String, CommandError> {
    match command {
        SwarmCommand::Init(args) => init(&args),
        SwarmCommand::Invite(args) => invite(&args),
        SwarmCommand::Join(args) => join(&args),
        SwarmCommand::Members(api) => {
            let view: AdmissionView = ApiClient::new(&api)?.get("/api/admission", &[]).await?;
            if api.json { json(&view) } else { Ok(listed(&view, style)) }
        }
        SwarmCommand::Expel(args) => expel(&args).await,
        SwarmCommand::Tell(args) => tell(&args).await,
    }
}

/// A day in milliseconds.
const DAY: Millis = 86_400_000;

fn length(text: &str) -> Result<Millis, String> {
    let wanted = || "write a whole number of seconds, minutes, hours, days, weeks or years, like 12h, 90d or 1y".to_owned();
    let unit: Millis = match text.chars().last() {
        Some('s') => 1_000,
        Some('m') => 60_000,
        Some('h') => 3_600_000,
        Some('d') => DAY,
        Some('w') => 7 * DAY,
        Some('y') => 365 * DAY,
        _ => return Err(wanted()),
    };
    let number: u64 = text[..text.len() - 1].parse::<u32>().map(u64::from).map_err(|_| wanted())?;
    if number == 0 || number * unit > 36_500 * DAY { Err(wanted()) } else { Ok(number * unit) }
}

fn member(text: &str) -> Result<AccessPoint, CommandError> {
    text.parse().map_err(|why: nearcrawl_model::access_point::ParseAccessPointError| {
        CommandError::new(Exit::Usage, why.to_string())
            .hint("`nearcrawl init` on that machine prints its peer id, and `nearcrawl members --json` those of all")
    })
}

fn wrong(why: AdmissionError) -> CommandError {
    CommandError::new(Exit::Data, why.to_string())
}

fn of_file(path: &Path, why: &io::Error) -> CommandError {
    let exit = match why.kind() {
        io::ErrorKind::NotFound => Exit::NoInput,
        io::ErrorKind::AlreadyExists => Exit::InUse,
        io::ErrorKind::PermissionDenied => Exit::NoPermission,
        io::ErrorKind::InvalidData => Exit::Data,
        _ => Exit::Storage,
    };
    CommandError::new(exit, format!("{}: {why}", path.display()))
}

fn init(args: &InitArgs) -> Result<String, CommandError> {
    let swarm = admission_files::create_root_key(&args.out).map_err(|why| {
        let hint = "a root key is never overwritten: name another file with --out";
        if why.kind() == io::ErrorKind::AlreadyExists {
            of_file(&args.out, &why).hint(hint)
        } else {
            CommandError::creating(&args.out, &why)
        }
    })?;
    if args.json {
        return json(&RootView { swarm, key_file: args.out.clone() });
    }
    Ok(format!(
        "the root key of swarm {swarm}\n  is in {}: keep it offline, and a copy of it\n  every member has in its configuration:\n\n{}",
        args.out.display(),
        section(&swarm)
    ))
}

fn section(swarm: &RootKey) -> String {
    format!("[admission]\nmode = \"invite\"\nswarm = \"{swarm}\"\n")
}

/// A key that may sign, and in whose name.
enum Signatory {
    Root(SigningKey),
    Inviter { key: SigningKey, own: Box<SignedAdmission>, certificate: Certificate },
}

impl Signatory {
    fn of(args: &SignArgs) -> Result<Signatory, CommandError> {
        let key = match admission_files::issuing_key(&args.key).map_err(of_node)? {
            IssuingKey::Root(key) => return Ok(Signatory::Root(key)),
            IssuingKey::Member(key) => key,
        };
        let path = args.certificate.clone().unwrap_or_else(|| args.key.with_file_name(CERTIFICATE_FILE));
        let own = admission_files::read_certificate(&path).map_err(|why| {
            of_file(&path, &why)
                .hint("an inviter signs with its own certificate beside its key: name it with --certificate, or use the root key")
        })?;
        let who = AccessPoint(key.verifying_key().to_bytes());
        match own.read().map_err(wrong)? {
            Admission::Certificate(certificate) if certificate.member == who && certificate.may_invite => {
                Ok(Signatory::Inviter { key, own: Box::new(own), certificate })
            }
            _ => {
                let why = format!("{}: by this certificate {who} is no inviter", path.display());
                Err(CommandError::new(Exit::Data, why).hint("the holder of the root key makes inviters: nearcrawl swarm invite --inviter"))
            }
        }
    }

    fn swarm(&self) -> RootKey {
        match self {
            Signatory::Root(key) => RootKey(key.verifying_key().to_bytes()),
            Signatory::Inviter { certificate, .. } => certificate.swarm,
        }
    }

    fn issuer(&self) -> Issuer {
        match self {
            Signatory::Root(_) => Issuer::Root,
            Signatory::Inviter { certificate, .. } => Issuer::Inviter(certificate.member),
        }
    }

    fn sign(&self, statement: &Admission) -> Result<SignedAdmission, CommandError> {
        match self {
            Signatory::Root(key) => SignedAdmission::by_root(statement, key),
            Signatory::Inviter { key, own, .. } => SignedAdmission::by_inviter(statement, key, own),
        }
        .map_err(wrong)
    }
}

fn invite(args: &InviteArgs) -> Result<String, CommandError> {
    let (member, signatory) = (member(&args.member)?, Signatory::of(&args.sign)?);
    let issued = clock::now().wall;
    let mut expires = WallTime(issued.0.saturating_add(args.expires));
    if let Signatory::Inviter { certificate, .. } = &signatory {
        expires = expires.min(certificate.expires);
    }
    let (swarm, issuer, label) = (signatory.swarm(), signatory.issuer(), args.label.clone());
    let certificate = Certificate { swarm, issuer, member, may_invite: args.inviter, issued, expires, label };
    let signed = signatory.sign(&Admission::Certificate(certificate.clone()))?;
    if let Some(out) = &args.out {
        admission_files::write_certificate(out, &signed).map_err(|why| CommandError::creating(out, &why))?;
    }
    if args.json {
        return json(&invitation(&certificate, &signed, args.out.clone()));
    }
    match &args.out {
        None => Ok(format!("{signed}\n")),
        Some(out) => {
            let out = out.display();
            Ok(format!("{}\n  the certificate is in {out}; on its machine: nearcrawl swarm join {out}\n", said(&certificate)))
        }
    }
}

fn invitation(certificate: &Certificate, signed: &SignedAdmission, written: Option<PathBuf>) -> InvitationView {
    InvitationView {
        swarm: certificate.swarm,
        access_point: certificate.member,
        label: certificate.label.clone(),
        may_invite: certificate.may_invite,
        invited_by: certificate.issuer.inviter(),
        issued_at: certificate.issued,
        expires_at: certificate.expires,
        statement: signed.to_string(),
        written,
    }
}

/// What a certificate says.
fn said(certificate: &Certificate) -> String {
    let by = certificate.issuer.inviter().map_or("the root key".to_owned(), |inviter| inviter.to_string());
    let may_invite = if certificate.may_invite { ", and may invite others" } else { "" };
    let label = if certificate.label.is_empty() { String::new() } else { format!(" ({})", certificate.label) };
    format!(
        "{}{label}\n  may be a member of swarm {}\n  until {}, invited by {by}{may_invite}",
        certificate.member,
        certificate.swarm,
        day(certificate.expires)
    )
}

fn day(at: WallTime) -> String {
    at.to_string().chars().take(10).collect()
}

/// What was signed, as it was typed, or in a file.
fn signed(text: &str) -> Result<SignedAdmission, CommandError> {
    match text.trim() {
        text if text.starts_with(TEXT_HEAD) => text.parse::<SignedAdmission>().map_err(wrong),
        text => admission_files::read_certificate(Path::new(text)).map_err(|why| of_file(Path::new(text), &why)),
    }
}

/// Why a certificate does not replace the one in this file: of two by one issuer members go by that which was signed later.
fn is_replaced(path: &Path, certificate: &Certificate) -> Option<String> {
    let Ok(Admission::Certificate(there)) = admission_files::read_certificate(path).ok()?.read() else { return None };
    let same = (there.swarm, there.issuer, there.member) == (certificate.swarm, certificate.issuer, certificate.member);
    (same && there.issued > certificate.issued).then(|| {
        format!(
            "{} holds one by the same issuer that was signed later, {}: members go by that, until {}",
            path.display(),
            there.issued,
            there.expires
        )
    })
}

fn join(args: &JoinArgs) -> Result<String, CommandError> {
    let signed = signed(&args.certificate)?;
    let config = args.config.load()?;
    let rule = &config.admission.rule;
    let root = rule.swarm.map_or_else(|| signed.read().map(|statement| statement.swarm()), Ok).map_err(wrong)?;
    let certificate = match signed.open(&root).map_err(wrong)? {
        Admission::Certificate(certificate) => certificate,
        Admission::Expulsion(one) => {
            return Err(CommandError::new(Exit::Data, format!("this expels {}: it is no certificate", one.member)));
        }
    };
    let me = node::init(&config).map_err(of_node)?.access_point;
    if certificate.member != me {
        let why = format!("the certificate is made out to {}, and this access point is {me}", certificate.member);
        return Err(CommandError::new(Exit::Data, why)
            .hint("have one made out to this peer id, or name the other access point's configuration with --config"));
    }
    if certificate.expires <= clock::now().wall {
        return Err(CommandError::new(Exit::Data, format!("the certificate ended {}: ask for another one", certificate.expires)));
    }
    let path = admission_files::certificate_path(&config);
    if let Some(why) = is_replaced(&path, &certificate) {
        return Err(CommandError::new(Exit::Data, why).hint("ask for one that is signed now"));
    }
    admission_files::write_certificate(&path, &signed).map_err(|why| of_file(&path, &why))?;
    if args.json {
        return json(&invitation(&certificate, &signed, Some(path)));
    }
    let mut told = format!(
        "{}\n  the certificate is in {}; a daemon that runs shows it after SIGHUP (systemctl kill -s HUP nearcrawl)\n",
        said(&certificate),
        path.display()
    );
    if rule.swarm.is_none() || rule.mode != AdmissionMode::Invite {
        told += &format!("  the configuration does not ask others for theirs yet; write into it:\n\n{}", section(&root));
    }
    Ok(told)
}

async fn expel(args: &ExpelArgs) -> Result<String, CommandError> {
    let (member, signatory) = (member(&args.member)?, Signatory::of(&args.sign)?);
    let at = clock::now().wall;
    let (swarm, issuer, reason) = (signatory.swarm(), signatory.issuer(), args.reason.clone());
    let expulsion = Expulsion { swarm, issuer, member, serial: at.0, at, reason };
    let signed = signatory.sign(&Admission::Expulsion(expulsion.clone()))?;
    match &args.out {
        Some(out) => written(&expulsion, &signed, out, args.api.json),
        None => give(&signed, &args.api).await,
    }
}

/// An expulsion is kept in a file until somebody gives it to a member.
fn written(expulsion: &Expulsion, signed: &SignedAdmission, out: &Path, is_json: bool) -> Result<String, CommandError> {
    admission_files::write_certificate(out, signed).map_err(|why| of_file(out, &why))?;
    let Expulsion { swarm, issuer, member, at, reason, .. } = expulsion.clone();
    if is_json {
        let (expelled_by, statement, written) = (issuer.inviter(), signed.to_string(), out.to_owned());
        return json(&SignedExpulsionView {
            swarm,
            access_point: member,
            expelled_by,
            expelled_at: at,
            reason_text: reason,
            statement,
            written,
        });
    }
    let out = out.display();
    Ok(format!(
        "the expulsion of {member} by {issuer} is signed, and in {out}\n  nobody knows of it yet; where a member runs: nearcrawl swarm tell {out}\n"
    ))
}

async fn tell(args: &TellArgs) -> Result<String, CommandError> {
    give(&signed(&args.statement)?, &args.api).await
}

/// Gives a daemon what was signed, and says what came of it.
async fn give(signed: &SignedAdmission, api: &ApiArgs) -> Result<String, CommandError> {
    let body = AdmissionBody { statement: signed.to_string() };
    let view: TakenInView = ApiClient::new(api)?.post("/api/admission", &body).await?;
    if api.json {
        return json(&view);
    }
    Ok(match signed.read().map_err(wrong)? {
        Admission::Certificate(one) => format!("{}\n  all members hear of it now\n", said(&one)),
        Admission::Expulsion(Expulsion { member, issuer: Issuer::Root, .. }) => {
            format!("{member} is expelled by the root key; all members hear of it now\n")
        }
        Admission::Expulsion(Expulsion { member, issuer, .. }) => format!(
            "{member} is expelled by {issuer}; all members hear of it now\n  with a certificate by another inviter, or by the root key, it stays a member\n"
        ),
    })
}

fn listed(view: &AdmissionView, style: Style) -> String {
    let mut text = format!("mode {}", view.mode);
    text += &view.swarm.map_or(String::new(), |swarm| format!(", swarm {swarm}"));
    text += "\n";
    if let Some(why) = &view.refused_text {
        text += &format!("this access point is no member: {why}\n");
    }
    if !view.certificates.is_empty() {
        let mut table = Table::new(&["member", "label", "alive", "invites", "invited by", "until", "state"]);
        view.certificates.iter().for_each(|one| table.row(row(one)));
        text += &format!("\n{}", table.text(style));
    }
    if !view.expulsions.is_empty() {
        let mut table = Table::new(&["expelled", "by", "since", "reason"]);
        view.expulsions.iter().for_each(|one| table.row(expelled(one)));
        text += &format!("\n{}", table.text(style));
    }
    if view.certificates.is_empty() && view.expulsions.is_empty() {
        text += "no certificate is known here; `nearcrawl members` lists the members\n";
    }
    text
}

fn by(issuer: Option<AccessPoint>) -> String {
    issuer.map_or("root key".to_owned(), |inviter| inviter.short())
}

fn row(one: &CertificateView) -> Vec<String> {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let state = match &one.refused_text {
        None => "counts".to_owned(),
        Some(why) => why.split(':').next().unwrap_or_default().to_owned(),
    };
    let label: String = one.label.chars().take(20).collect();
    vec![one.access_point.short(), label, yes(one.alive), yes(one.may_invite), by(one.invited_by), day(one.expires_at), state]
}

fn expelled(one: &ExpulsionView) -> Vec<String> {
    let reason: String = one.reason_text.chars().take(50).collect();
    vec![one.access_point.short(), by(one.expelled_by), day(one.expelled_at), reason]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_in(line: &str) -> SwarmCommand {
        #[derive(clap::Parser)]
        struct Typed {
            #[command(subcommand)]
            command: SwarmCommand,
        }
        <Typed as clap::Parser>::try_parse_from(["nearcrawl"].into_iter().chain(line.split(' '))).unwrap().command
    }

    async fn run(line: &str) -> Result<String, CommandError> {
        swarm(type_in(line), Style::Plain).await
    }

    #[tokio::test]
    async fn an_expulsion_is_signed_without_a_daemon_and_a_file_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        run(&format!("init --out {}", path("ROOT.key"))).await.unwrap();
        let member = AccessPoint([7; 32]);
        let told = run(&format!("expel {member} --key {} --reason leaked --out {}", path("ROOT.key"), path("out.txt"))).await.unwrap();
        assert!(told.contains("nobody knows of it yet") && told.contains("nearcrawl swarm tell"), "{told}");
        let expulsion = signed(&path("out.txt")).unwrap().read().unwrap();
        assert!(expulsion.expels() && expulsion.member() == member && expulsion.issuer() == Issuer::Root);
        // The API that is asked does not answer: it is what `tell` speaks to.
        let failure = run(&format!("tell {} --api http://127.0.0.1:9", path("out.txt"))).await.unwrap_err();
        assert_eq!(failure.exit, Exit::Unavailable, "{failure}");
    }

    #[tokio::test]
    async fn a_certificate_that_was_signed_before_the_one_that_is_there_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(path("node.toml"), format!("contact = \"me@museum.ke\"\nstate_dir = {:?}\n", directory.path().join("state")))
            .unwrap();
        let config = crate::node::config::Config::load(Some(Path::new(&path("node.toml")))).unwrap();
        let me = node::init(&config).unwrap().access_point;
        let key = SigningKey::from_bytes(&[9; 32]);
        let certificate = |issued: u64, expires: u64| Certificate {
            swarm: RootKey(key.verifying_key().to_bytes()),
            issuer: Issuer::Root,
            member: me,
            may_invite: false,
            issued: WallTime(issued),
            expires: WallTime(expires),
            label: String::new(),
        };
        let now = clock::now().wall.0;
        for (name, one) in [("short", certificate(now - 1_000, now + DAY)), ("long", certificate(now - 2_000, now + 90 * DAY))] {
            let signed = SignedAdmission::by_root(&Admission::Certificate(one), &key).unwrap();
            admission_files::write_certificate(Path::new(&path(name)), &signed).unwrap();
        }
        run(&format!("join {} --config {}", path("long"), path("node.toml"))).await.unwrap();
        run(&format!("join {} --config {}", path("short"), path("node.toml"))).await.unwrap();
        let failure = run(&format!("join {} --config {}", path("long"), path("node.toml"))).await.unwrap_err();
        assert!(failure.exit == Exit::Data && failure.message.contains("signed later"), "{failure}");
    }

    #[test]
    fn a_key_in_a_directory_that_is_not_there_is_refused_with_what_helps() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("none/ROOT.key");
        let failure = init(&InitArgs { out, json: false }).unwrap_err();
        assert!(failure.exit == Exit::InUse && failure.message.contains("none/ROOT.key cannot be written"), "{failure}");
        assert!(failure.hint.is_some_and(|hint| hint.contains("create its directory")));
    }

    #[test]
    fn lengths_are_seconds_to_years() {
        assert_eq!((length("90d"), length("2w"), length("1y")), (Ok(90 * DAY), Ok(14 * DAY), Ok(365 * DAY)));
        assert_eq!((length("12h"), length("30m"), length("40s")), (Ok(DAY / 2), Ok(DAY / 48), Ok(40_000)));
        for wrong in ["", "1", "d", "0d", "-1d", "1.5y", "101y", "1é"] {
            assert!(length(wrong).unwrap_err().contains("90d"), "{wrong}");
        }
    }
}
