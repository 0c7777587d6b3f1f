//! `init`: writes a configuration and creates the access point's key; what a volunteer does first.

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

/// How a file begins whose operator has named no contact yet.
const NO_CONTACT: &str = "#contact = \"\"";

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
    A file or a key that is there is kept; in a file in which `contact` and `bootstrap` are switched off still, as the package lays it down, they are \
    set. The file explains every key; `nearcrawl check` finds mistakes. `nearcrawl run` creates a key, \
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

/// A configuration that was written just now.
#[derive(Debug)]
struct Written {
    path: PathBuf,
    /// What stood there before; none if there was no file.
    before: Option<String>,
}

impl Written {
    /// Puts back what was there: the same command is to do all of it, once what kept it from that is mended.
    fn undo(self) {
        // The error that is told is the one for which it is undone.
        let _ = match self.before {
            Some(before) => replace(&self.path, &before),
            None => std::fs::remove_file(&self.path).map_err(|why| CommandError::of_file(&self.path, &why)),
        };
    }
}

/// Writes the configuration, if a contact is given, and creates the key and the state directory.
pub fn init(args: &InitArgs) -> Result<String, CommandError> {
    let written = args.contact.as_ref().map(|contact| write(args, contact)).transpose()?;
    let made = args.config.load().and_then(|config| node::init(&config).map_err(of_node).map(|identity| (config, identity)));
    let (config, identity, written) = match made {
        Ok((config, identity)) => (config, identity, written.map(|written| written.path)),
        Err(why) => {
            written.into_iter().for_each(Written::undo);
            return Err(why);
        }
    };
    let (access_point, state_dir) = (identity.access_point.to_string(), config.state_dir.clone());
    let view = InitView { access_point, state_dir, created: identity.created, written };
    if args.json {
        return json(&view);
    }
    let made = if view.created { "created" } else { "kept" };
    let mut text = format!("{}\n  the key was {made} in {}\n", view.access_point, view.state_dir.display());
    if let Some(written) = &view.written {
        let next = if written == Path::new(SERVICE_CONFIG) {
            "look it through, and at what nearcrawl doctor says, then: systemctl enable --now nearcrawl (without systemd: nearcrawl run)"
                .to_owned()
        } else {
            format!("look it through, then: nearcrawl run --config {}", written.display())
        };
        text += &format!("  the configuration is in {}; {next}\n", written.display());
        if config.swarm.bootstrap.is_empty() {
            text += "  it names no member to join through (swarm.bootstrap): this access point begins a swarm of its own\n";
        }
    }
    Ok(text)
}

/// Writes the example with contact and members set where no file is yet, and sets them in a file in which both are switched off. Nothing is
/// written that could not be read again.
fn write(args: &InitArgs, contact: &str) -> Result<Written, CommandError> {
    let path = args.config.config.clone().unwrap_or_else(|| PathBuf::from(SERVICE_CONFIG));
    for address in &args.bootstrap {
        check_dial_address(address).map_err(|wanted| CommandError::new(Exit::Usage, format!("--bootstrap {address}: {wanted}")))?;
    }
    let set_in = |text: &str| {
        let text = filled_in(text, contact, &args.bootstrap);
        let read = Config::parse(&text, &path).ok();
        read.filter(|read| read.contact.is_some() && (args.bootstrap.is_empty() || read.swarm.bootstrap == args.bootstrap)).map(|_| text)
    };
    let Some(fresh) = set_in(EXAMPLE) else {
        let why = format!("--contact {contact}: no operator of a web server could write to it");
        return Err(
            CommandError::new(Exit::Usage, why).hint("write your email address or web page, like me@museum.or.ke; not one at example.org")
        );
    };
    // As the package lays it down; what an operator has written into it is kept.
    let laid_down = std::fs::read_to_string(&path).ok().filter(|text| text.lines().any(|line| line == NO_CONTACT));
    let set = laid_down.and_then(|before| Some((set_in(&before)?, before)));
    let before = match set {
        Some((text, before)) => replace(&path, &text).map(|()| Some(before))?,
        None => write_new(&path, &fresh).map(|()| None)?,
    };
    Ok(Written { path, before })
}

fn write_new(path: &Path, text: &str) -> Result<(), CommandError> {
    let mut file = File::create_new(path).map_err(|why| match why.kind() {
        io::ErrorKind::AlreadyExists => CommandError::new(Exit::InUse, format!("{} is there already, and was not changed", path.display()))
            .hint("set `contact` and `bootstrap` in it, or name another file with --config"),
        _ => not_written(path, &why),
    })?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|why| {
        // Half a configuration would be taken for a whole one.
        let _ = std::fs::remove_file(path);
        not_written(path, &why)
    })
}

/// Why the configuration cannot be written, with the exit code of that reason.
fn not_written(path: &Path, why: &io::Error) -> CommandError {
    let failure = CommandError::of_file(path, why);
    match failure.exit {
        Exit::NoInput => failure.hint("make the directory first, or name another file with --config"),
        Exit::NoPermission => failure.hint("name a file of your own with --config, or run it as root"),
        _ => failure,
    }
}

/// Puts this text in the place of a file, whole or not at all, with the rights of the old one.
fn replace(path: &Path, text: &str) -> Result<(), CommandError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let done = std::fs::metadata(path).and_then(|old| {
        let mut file = File::create(&beside)?;
        file.set_permissions(old.permissions())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    });
    done.map_err(|why| {
        let _ = std::fs::remove_file(&beside);
        not_written(path, &why)
    })
}

/// The text with these values in the lines that switch them off. What they may contain is checked by reading the whole again.
fn filled_in(text: &str, contact: &str, bootstrap: &[String]) -> String {
    let members: Vec<_> = bootstrap.iter().map(|member| format!("{member:?}")).collect();
    let lines = text.lines().map(|line| match line {
        NO_CONTACT => format!("contact = {contact:?}\n"),
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
        assert_eq!(write(&args(&path, "me@museum.or.ke", &members), "me@museum.or.ke").unwrap().path, path);
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
    fn in_the_file_of_the_package_contact_and_members_are_set_once_and_the_rest_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nearcrawl.toml");
        std::fs::write(&path, include_str!("../../packaging/nearcrawl.toml")).unwrap();
        let member = "/ip4/192.0.2.7/tcp/4817";
        write(&args(&path, "me@museum.or.ke", &[member]), "me@museum.or.ke").unwrap();
        let config = Config::load(Some(&path)).unwrap();
        assert_eq!((config.contact.as_deref(), &config.swarm.bootstrap[..]), (Some("me@museum.or.ke"), &[member.to_owned()][..]));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), include_str!("../../packaging/nearcrawl.toml").lines().count());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing beside it");
        assert_eq!(write(&args(&path, "you@museum.or.ke", &[]), "you@museum.or.ke").unwrap_err().exit, Exit::InUse);
        // Members that its operator has written stay, too.
        let own = "#contact = \"\"\n[swarm]\nbootstrap = [\"/ip4/192.0.2.9/tcp/4817\"]\n";
        std::fs::write(&path, own).unwrap();
        assert_eq!(write(&args(&path, "me@museum.or.ke", &[member]), "me@museum.or.ke").unwrap_err().exit, Exit::InUse);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), own);
    }

    #[test]
    fn if_the_key_cannot_be_made_the_configuration_is_as_it_was_and_the_same_command_goes_on_once_it_can() {
        let packaged = include_str!("../../packaging/nearcrawl.toml").replace(NO_CONTACT, &format!("{NO_CONTACT}\nstate_dir = \"state\""));
        let directory = tempfile::tempdir().unwrap();
        let (path, state) = (directory.path().join("node.toml"), directory.path().join("state"));
        let args = args(&path, "me@museum.or.ke", &["/ip4/192.0.2.7/tcp/4817"]);
        // No key can be made in a file.
        std::fs::write(&state, "").unwrap();
        std::fs::write(&path, &packaged).unwrap();
        let failed = init(&args).unwrap_err();
        assert!(failed.message.contains(&state.display().to_string()), "{failed}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), packaged);
        assert_eq!(init(&args).unwrap_err(), failed, "the same command again fails for the same reason");
        std::fs::remove_file(&state).unwrap();
        assert!(init(&args).unwrap().contains("access_point") && state.join("key").is_file());
        assert_eq!(Config::load(Some(&path)).unwrap().contact.as_deref(), Some("me@museum.or.ke"));
    }

    #[test]
    fn a_configuration_that_was_made_for_nothing_is_not_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.toml");
        write(&args(&path, "me@museum.or.ke", &[]), "me@museum.or.ke").unwrap().undo();
        assert!(!path.exists());
        assert!(write(&args(&path, "me@museum.or.ke", &[]), "me@museum.or.ke").is_ok(), "so the same command goes on");
    }

    #[test]
    fn why_it_cannot_be_written_is_told_by_the_exit_code() {
        let directory = tempfile::tempdir().unwrap();
        let below_none = directory.path().join("none").join("node.toml");
        let refused = write(&args(&below_none, "me@museum.or.ke", &[]), "me@museum.or.ke").unwrap_err();
        assert!(refused.exit == Exit::NoInput && refused.hint.is_some(), "{refused}");
        // The tests may run as root, who may write everywhere.
        let forbidden = not_written(&below_none, &io::ErrorKind::PermissionDenied.into());
        assert!(forbidden.exit == Exit::NoPermission && forbidden.hint.is_some(), "{forbidden}");
        assert_eq!(not_written(&below_none, &io::ErrorKind::StorageFull.into()).exit, Exit::Storage);
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
