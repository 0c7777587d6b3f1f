//! Rules on pictures: they need a text for people who do not see them.

use crate::evaluation::{
    document::{Element, Item, Visit},
    found::Found,
    name::has_name,
    roles::Role,
    semantics::is_decorative,
};
use nearcrawl_model::evaluation::Rule;

pub(super) fn check(element: Element<'_>, found: &mut Found) {
    // A picture that was to be decoration, but is exposed for another reason, needs a name like any other.
    let is_image = || element.is("img") || element.has_role("img") || element.has_role("image");
    let is_silent = || element.role().is_some_and(Role::is_presentational);
    if !element.is_exposed() {
        let may_be_shown = element.state().is_exposed() && element.is_html();
        if may_be_shown && is_image() && !is_silent() && !has_name(element) {
            found.cannot_tell(Rule::ImageName);
        }
        return;
    }
    if element.is_svg() {
        let images = ["img", "image", "graphics-document", "graphics-symbol"];
        if element.explicit_role().is_some_and(|role| images.contains(&role.name)) {
            found.judge(Rule::SvgName, element, !has_name(element));
        }
    } else if element.is_html() {
        if is_image() {
            let fails = !is_silent() && !has_name(element);
            // If an empty text alternative is in conflict with the focus, no standard says who wins; with a role it does.
            match fails && is_decorative(element) && element.explicit_role().is_none() {
                true => found.cannot_tell(Rule::ImageName),
                false => found.judge(Rule::ImageName, element, fails),
            }
        }
        if is_image_button(element) && element.has_role("button") {
            found.judge(Rule::ImageButtonName, element, !has_name(element));
        }
        if is_media_object(element) {
            match has_fallback(element) && !has_name(element) {
                true => found.cannot_tell(Rule::ObjectName),
                false => found.judge(Rule::ObjectName, element, !has_name(element)),
            }
        }
    }
    let keeps_role = || element.role().is_some_and(|role| !role.is_presentational() && !role.is_generic());
    if is_decorative(element) {
        found.judge(Rule::DecorativeExposed, element, keeps_role());
    }
}

/// Whether an element is a button drawn by a picture.
pub(super) fn is_image_button(element: Element<'_>) -> bool {
    element.is("input") && element.attr_is("type", "image")
}

/// Whether an object shows a picture, a film or a sound.
fn is_media_object(element: Element<'_>) -> bool {
    if !element.is("object") || element.explicit_role().is_some() {
        return false;
    }
    let media = |kind: &str| ["image/", "audio/", "video/"].iter().any(|prefix| kind.trim_ascii().to_ascii_lowercase().starts_with(prefix));
    match (element.attr("type"), element.attr("data")) {
        (Some(kind), _) => media(kind),
        (None, Some(url)) => is_media_file(url),
        (None, None) => false,
    }
}

/// Whether an object may show something else instead: nobody can tell from here.
fn has_fallback(object: Element<'_>) -> bool {
    object.walk(|_| Visit::Into).any(|item| match item {
        Item::Text(says, _) => says,
        Item::Element(element) => !element.is("param"),
    })
}

fn is_media_file(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let media = "avif bmp gif ico jpeg jpg png svg webp aac flac m4a mp3 oga ogg opus wav m4v mov mp4 ogv webm";
    extension.is_some_and(|extension| media.split(' ').any(|each| each == extension))
}
