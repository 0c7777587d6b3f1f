//! Vocabulary of made-up hosts: words, languages, software, failures, and hosts of the real world that are out of scope.

use super::host::{Flaw, Voice};

/// The top-level domains of all hosts: reserved for tests, or once were, so that no real host can ever be meant. Two are those of countries, by
/// codes that no country can have.
pub(crate) const TLDS: [&str; 8] = ["test", "example", "xn--0zwm56d", "xn--zckzah", "xn--kgbechtv", "xn--jxalpdlp", "qm", "xa"];

pub(crate) const WORDS: [&str; 16] = [
    "museum", "library", "harbour", "council", "market", "clinic", "radio", "school", "archive", "bakery", "theatre", "railway", "garden",
    "forum", "gallery", "college",
];

const fn voice(tag: &'static str, word_of_tag: &'static str, script: &'static str, text: &'static str, word: &'static str) -> Voice {
    Voice { tag: Some((tag, word_of_tag)), by_header: false, is_valid: true, script: Some(script), text, word }
}

/// Languages and scripts. Each text has far more letters than decide on the script.
pub(crate) const VOICES: [Voice; 16] = [
    voice("en", "en", "Latn", "Welcome to our house by the river, where everybody finds something", "more"),
    voice("en-KE", "en", "Latn", "The opening hours are posted at the entrance of the building", "further"),
    voice("sw", "sw", "Latn", "Karibu kwenye makumbusho ya jiji letu, tunafurahi kukuona", "zaidi"),
    voice("de-AT", "de", "Latn", "Herzlich willkommen in unserem Hause, wir freuen uns auf Ihren Besuch", "weiter"),
    voice("pt-BR", "pt", "Latn", "Bem-vindo ao museu da nossa cidade, aberto todos os dias da semana", "mais"),
    voice("ru", "ru", "Cyrl", "Добро пожаловать в музей нашего города, мы рады видеть вас", "далее"),
    voice("uk", "uk", "Cyrl", "Ласкаво просимо до нашого міського музею щодня крім понеділка", "далі"),
    voice("el", "el", "Grek", "Καλώς ήρθατε στο μουσείο της πόλης μας κάθε μέρα", "περισσότερα"),
    voice("ar", "ar", "Arab", "مرحبا بكم في متحف المدينة القديمة ونتمنى لكم زيارة سعيدة", "المزيد"),
    voice("ja", "ja", "Jpan", "東京国立博物館へようこそ。展示室のご案内はこちらです。毎日ひらいています", "つづき"),
    voice("ko", "ko", "Kore", "국립중앙박물관에 오신 것을 환영합니다 안내는 여기에 있습니다", "더보기"),
    voice("th", "th", "Thai", "ยินดีต้อนรับสู่พิพิธภัณฑ์แห่งชาติของเรา", "เพิ่มเติม"),
    voice("hi", "hi", "Deva", "हमारे नगर के संग्रहालय में आपका स्वागत है हम प्रतिदिन खुले हैं", "आगे"),
    Voice { by_header: true, ..voice("fr-CA", "fr", "Latn", "Bienvenue dans la maison de notre ville, ouverte tous les jours", "suite") },
    Voice { is_valid: false, ..voice("xx-nowhere", "xx", "Latn", "Somebody wrote down a language that nobody speaks anywhere", "more") },
    Voice { tag: None, by_header: false, is_valid: true, script: None, text: "1 2 3 4 5 6 7 8 9", word: "10" },
];

pub(crate) const SOFTWARE: [Option<&str>; 9] = [
    Some("nginx/1.24.0"),
    Some("nginx/1.18.0 (Ubuntu)"),
    Some("Apache/2.4.57 (Debian)"),
    Some("Apache"),
    Some("Microsoft-IIS/10.0"),
    Some("LiteSpeed"),
    Some("Caddy"),
    Some("openresty/1.21.4.1"),
    None,
];

pub(crate) const GENERATORS: [Option<&str>; 5] = [Some("WordPress 6.8"), Some("Drupal 10"), Some("Joomla! 4"), None, None];

/// Each markup fails its rule once, by the rule's own text, and no other one.
pub(crate) const FLAWS: [Flaw; 12] = [
    Flaw { rule: "23a2a8", markup: "<p><img src=\"/mask.png\"></p>", in_head: false },
    Flaw { rule: "97a4e1", markup: "<p><button></button></p>", in_head: false },
    Flaw { rule: "c487ae", markup: "<p><a href=\"/\"></a></p>", in_head: false },
    Flaw { rule: "ffd0e9", markup: "<h2></h2>", in_head: false },
    Flaw { rule: "e086e5", markup: "<p><input type=\"text\"></p>", in_head: false },
    Flaw { rule: "b4f0c3", markup: "<meta name=\"viewport\" content=\"width=device-width, user-scalable=no\">", in_head: true },
    Flaw { rule: "674b10", markup: "<p role=\"buton\">1</p>", in_head: false },
    Flaw { rule: "73f2c2", markup: "<p><label>1 <input type=\"text\" autocomplete=\"badterm\"></label></p>", in_head: false },
    Flaw { rule: "5f99a7", markup: "<p aria-labl=\"1\">1</p>", in_head: false },
    Flaw { rule: "6a7281", markup: "<p><button aria-pressed=\"yes\">1</button></p>", in_head: false },
    Flaw { rule: "6cfa84", markup: "<p aria-hidden=\"true\"><a href=\"/\">1</a></p>", in_head: false },
    Flaw { rule: "2t702h", markup: "<details><summary></summary>1</details>", in_head: false },
];

/// URLs out of scope, with their hosts and registrable domains.
pub(crate) const OUTSIDE: [(&str, &str, &str); 12] = [
    ("http://www.bbc.co.uk/", "www.bbc.co.uk", "bbc.co.uk"),
    ("https://news.bbc.co.uk/1/hi", "news.bbc.co.uk", "bbc.co.uk"),
    ("http://louvre.fr/", "louvre.fr", "louvre.fr"),
    ("http://www.louvre.fr/en", "www.louvre.fr", "louvre.fr"),
    ("https://en.wikipedia.org/wiki/Museum", "en.wikipedia.org", "wikipedia.org"),
    ("https://sw.wikipedia.org/wiki/Nairobi", "sw.wikipedia.org", "wikipedia.org"),
    ("https://www.w3.org/WAI/", "www.w3.org", "w3.org"),
    ("http://museums.or.ke/", "museums.or.ke", "museums.or.ke"),
    ("http://www.museums.or.ke/masks", "www.museums.or.ke", "museums.or.ke"),
    ("http://portal.gov.br/", "portal.gov.br", "portal.gov.br"),
    ("http://shop.com/", "shop.com", "shop.com"),
    ("http://shop.com/second", "shop.com", "shop.com"),
];
