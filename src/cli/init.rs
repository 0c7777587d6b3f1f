//! `init` writes a configuration and creates the access point's key: what a volunteer does first.

use super::{
    error::{CommandError, Exit},
    json,
    run::{ConfigArgs, of_node},
};
use crate::node::{
    self,
    config::{Config, SERVICE_CONFIG, check_dial_address},
};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Every key with its default and its explanation.
const EXAMPLE: &str = include_str!("../../nearcrawl.example.toml");

/// The arguments of `init`.
#[derive(Args, Clone, Debug)]
pub struct InitArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Write a configuration with this contact: your email address or web page, for the operators of web servers
    #[arg(long, value_name = "CONTACT")]
    contact: Option<String>,
    /// Write there to join through this member (repeatable)
    #[arg(long, value_name = "MULTIADDR", requires = "contact")]
    bootstrap: Vec<String>,
    /// Print the access point's id as JSON
    #[arg(long)]
    json: bool,
}

/// Shown under `init --help`.
pub const INIT_EXAMPLES: &str = "Examples:\n  \
    nearcrawl init --contact me@museum.or.ke   write the service's configuration\n  \
    nearcrawl init --config node.toml --contact me@museum.or.ke \\\n    \
    --bootstrap /dns4/ap.museum.or.ke/tcp/4817\n  \
    nearcrawl init --config node.toml --json   as {\"access_point\": …}\n\n\
    A file or a key that is there is kept. The file explains every key; `nearcrawl check` finds mistakes. `nearcrawl run` creates a key, \
    too, if there is none.";

/// The answer of `init --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitView {
    /// The access point's peer id.
    pub access_point: String,
    /// The state directory, which holds the key.
    pub state_dir: PathBuf,
    /// Whether the key was created now (false: it existed).
    pub created: bool,
    /// The configuration that was written, if one was.
    pub written: Option<PathBuf>,
}

/// Writes the configuration, if a contact is given, and creates the key and the state directory.
pub fn init(args: &InitArgs) -> Result<String, CommandError> {
    let written = args.contact.as_ref().map(|contact| write(args, contact)).transpose()?;
    let config = args.config.load()?;
    let identity = node::init(&config).map_err(of_node)?;
    let (access_point, state_dir) = (identity.access_point.to_string(), config.state_dir.clone());
    let view = InitView { access_point, state_dir, created: identity.created, written };
    if args.json {
        return json(&view);
    }
    let made = if view.created { "created" } else { "kept" };
    let mut text = format!("{}\n  the key was {made} in {}\n", view.access_point, view.state_dir.display());
    if let Some(written) = &view.written {
        let option = if written == Path::new(SERVICE_CONFIG) { String::new() } else { format!(" --config {}", written.display()) };
        text += &format!("  the configuration is in {}; look it through, then: nearcrawl run{option}\n", written.display());
        if config.swarm.bootstrap.is_empty() {
            text += "  it names no member to join through (swarm.bootstrap): this access point begins a swarm of its own\n";
        }
    }
    Ok(text)
}

/// Writes the example with contact and members set, where no file is yet. Nothing is written that could not be read again.
fn write(args: &InitArgs, contact: &str) -> Result<PathBuf, CommandError> {
    let path = args.config.config.clone().unwrap_or_else(|| PathBuf::from(SERVICE_CONFIG));
    for address in &args.bootstrap {
        check_dial_address(address).map_err(|wanted| CommandError::new(Exit::Usage, format!("--bootstrap {address}: {wanted}")))?;
    }
    let text = filled_in(contact, &args.bootstrap);
    let read = Config::parse(&text, &path).ok().filter(|read| read.contact.is_some() && read.swarm.bootstrap == args.bootstrap);
    if read.is_none() {
        let why = format!("--contact {contact}: no operator of a web server could write to it");
        return Err(
            CommandError::new(Exit::Usage, why).hint("write your email address or web page, like me@museum.or.ke; not one at example.org")
        );
    }
    let cannot = |why: &io::Error| CommandError::new(Exit::InUse, format!("{}: {why}", path.display()));
    let mut file = File::create_new(&path).map_err(|why| match why.kind() {
        io::ErrorKind::AlreadyExists => CommandError::new(Exit::InUse, format!("{} is there already, and was not changed", path.display()))
            .hint("set `contact` and `bootstrap` in it, or name another file with --config"),
        io::ErrorKind::NotFound => cannot(&why).hint("make the directory first, or name another file with --config"),
        io::ErrorKind::PermissionDenied => cannot(&why).hint("name a file of your own with --config, or run it as root"),
        _ => cannot(&why),
    })?;
    let done = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    done.map_err(|why| {
        // Half a configuration would be taken for a whole one.
        let _ = std::fs::remove_file(&path);
        CommandError::new(Exit::Storage, format!("{}: {why}", path.display()))
    })?;
    Ok(path)
}

/// The example with these values. What they may contain is checked by reading the whole again.
fn filled_in(contact: &str, bootstrap: &[String]) -> String {
    let members: Vec<_> = bootstrap.iter().map(|member| format!("{member:?}")).collect();
    let lines = EXAMPLE.lines().map(|line| match line {
        "#contact = \"\"" => format!("contact = {contact:?}\n"),
        "#bootstrap = []" if !members.is_empty() => format!("bootstrap = [{}]\n", members.join(", ")),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(config: &Path, contact: &str, bootstrap: &[&str]) -> InitArgs {
        let bootstrap = bootstrap.iter().map(|address| (*address).to_owned()).collect();
        InitArgs { config: ConfigArgs { config: Some(config.to_owned()) }, contact: Some(contact.to_owned()), bootstrap, json: true }
    }

    #[test]
    fn what_is_written_is_the_example_with_contact_and_members() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.toml");
        let members = ["/dns4/ap.museum.or.ke/tcp/4817", "/ip4/192.0.2.7/tcp/4817"];
        assert_eq!(write(&args(&path, "me@museum.or.ke", &members), "me@museum.or.ke").unwrap(), path);
        let config = Config::load(Some(&path)).unwrap();
        assert_eq!((config.contact.as_deref(), &config.swarm.bootstrap[..]), (Some("me@museum.or.ke"), &members.map(str::to_owned)[..]));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), EXAMPLE.lines().count(), "all explanations are there");
        // It is never overwritten.
        let again = write(&args(&path, "you@museum.or.ke", &[]), "you@museum.or.ke").unwrap_err();
        assert!(again.exit == Exit::InUse && again.message.contains("was not changed"), "{again}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn nothing_is_written_for_a_contact_or_a_member_that_cannot_be_reached() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.toml");
        for (contact, members) in
            [("nobody", &[][..]), ("me@example.org", &[]), ("a@b.ke\"\nx = 1", &[]), ("me@museum.or.ke", &["192.0.2.7"])]
        {
            let refused = write(&args(&path, contact, members), contact).unwrap_err();
            assert!(refused.exit == Exit::Usage && !path.exists(), "{contact}: {refused}");
        }
    }
}
