//! Settings from flags, environment, `shelf.toml` and built-in defaults; resolved once, each value with its origin.

mod table;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use directories::ProjectDirs;
use toml::{Table, Value};

pub(crate) use table::{
    BUCKET_VARIABLES, CONFIG_VARIABLE, DATABASE_PASSWORD_VARIABLE, SETTINGS, TOKEN_VARIABLE,
};

/// The commented default file, which also defines the default values.
pub(crate) const DEFAULT: &str = include_str!("default.toml");

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag,
    Environment(&'static str),
    File(PathBuf),
    Default,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag => formatter.write_str("flag"),
            Self::Environment(name) => write!(formatter, "environment {name}"),
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Default => formatter.write_str("default"),
        }
    }
}

/// All settings, each with its origin.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, (Value, Origin)>,
    /// The settings file, when it is not the usual one.
    named_file: Option<PathBuf>,
}

impl Settings {
    /// Resolves every setting. `flags` are values given on the command line, by key.
    pub(crate) fn resolve(
        config: Option<&Path>,
        flags: &BTreeMap<&'static str, Value>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let defaults: Table = DEFAULT.parse().context("the built-in default settings")?;
        let file = read_file(config, &environment)?;
        let mut values = BTreeMap::new();
        for setting in SETTINGS {
            let default =
                look_up(&defaults, setting.key).ok_or_else(|| anyhow!("no default for {}", setting.key))?;
            let resolved = if let Some(value) = flags.get(setting.key) {
                (value.clone(), Origin::Flag)
            } else if let Some(text) = environment(setting.variable) {
                let value = parse_like(default, &text)
                    .with_context(|| format!("environment variable {}", setting.variable))?;
                (value, Origin::Environment(setting.variable))
            } else if let Some((path, table)) = &file
                && let Some(value) = look_up(table, setting.key)
            {
                if value.type_str() != default.type_str() {
                    bail!(
                        "{}: {} must be {}, not {}",
                        path.display(),
                        setting.key,
                        with_article(default.type_str()),
                        with_article(value.type_str())
                    );
                }
                (value.clone(), Origin::File(path.clone()))
            } else {
                (default.clone(), Origin::Default)
            };
            if resolved.0.as_integer().is_some_and(|number| number < 0) {
                bail!("{} must not be negative ({})", setting.key, resolved.1);
            }
            values.insert(setting.key, resolved);
        }
        let named_file = file.map(|(path, _)| path).filter(|path| Some(path) != usual_file().as_ref());
        Ok(Self { values, named_file })
    }

    /// Every key with its value and origin, secrets masked.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, Value, &Origin)> {
        self.values.iter().map(|(key, (value, origin))| {
            let text = value.as_str().unwrap_or_default();
            let shown = match *key {
                "embedding.key" if !text.is_empty() => Value::String("***".into()),
                "library.catalog" => Value::String(Password::Masked.in_address(text)),
                _ => value.clone(),
            };
            (*key, shown, origin)
        })
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.values.get(key).and_then(|(value, _)| value.as_str()).unwrap_or_default()
    }

    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        let list = self.values.get(key).and_then(|(value, _)| value.as_array());
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    pub(crate) fn number(&self, key: &str) -> u64 {
        self.values
            .get(key)
            .and_then(|(value, _)| value.as_integer())
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(0)
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.values.get(key).and_then(|(value, _)| value.as_bool()).unwrap_or(false)
    }

    pub(crate) fn is_default(&self, key: &str) -> bool {
        self.values.get(key).is_none_or(|(_, origin)| *origin == Origin::Default)
    }

    /// Where a value came from, in words.
    pub(crate) fn origin(&self, key: &str) -> String {
        self.values.get(key).map_or_else(String::new, |(_, origin)| origin.to_string())
    }

    pub(crate) fn address(&self, key: &str) -> anyhow::Result<SocketAddr> {
        let text = self.text(key);
        parse_address(text).ok_or_else(|| {
            let name = match (self.values.get(key).map(|(_, origin)| origin), key) {
                (Some(Origin::Flag), "http.listen") => "--http".to_owned(),
                (Some(Origin::Flag), "http.admin_listen") => "--admin-listen".to_owned(),
                (Some(Origin::Environment(name)), _) => (*name).to_owned(),
                _ => key.to_owned(),
            };
            anyhow!("{name} must be {ADDRESS_FORMS}, not '{text}'")
        })
    }

    /// Refuses addresses that are none, whichever command is given: a mistake in the settings is found when it is made.
    pub(crate) fn check_addresses(&self) -> anyhow::Result<()> {
        self.address("http.listen")?;
        match self.text("http.admin_listen") {
            "off" | "" => Ok(()),
            _ => self.address("http.admin_listen").map(drop),
        }
    }

    /// Whether a value was given as a flag.
    pub(crate) fn is_flag(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|(_, origin)| *origin == Origin::Flag)
    }

    /// How this program is called so that it uses the same library: with the flag that was given for it.
    pub(crate) fn program(&self) -> String {
        let folder = self.data_dir().map(|folder| folder.display().to_string());
        match folder {
            Ok(folder) if self.is_flag("data_dir") => format!("shelf --data-dir {}", quoted(&folder)),
            _ => "shelf".to_owned(),
        }
    }

    /// The flags with which this program uses the same library when it is started elsewhere, without any secret.
    pub(crate) fn flags(&self) -> anyhow::Result<Vec<String>> {
        let mut flags = Vec::new();
        if let Some(path) = &self.named_file {
            flags.extend(["--config".to_owned(), std::path::absolute(path)?.display().to_string()]);
        }
        if !self.is_default("data_dir") {
            flags.extend(["--data-dir".to_owned(), self.data_dir()?.display().to_string()]);
        }
        let is_in_a_file = matches!(self.values.get("library.catalog"), Some((_, Origin::File(_))));
        let catalog = self.text("library.catalog");
        if !catalog.is_empty() && !is_in_a_file {
            flags.extend(["--catalog".to_owned(), Password::TakenOut.in_address(catalog)]);
        }
        Ok(flags)
    }

    /// The same, always with the folder: for those who start it as another user, or with another home.
    pub(crate) fn flags_with_folder(&self) -> anyhow::Result<Vec<String>> {
        let mut flags = self.flags()?;
        if self.is_default("data_dir") {
            flags.extend(["--data-dir".to_owned(), self.data_dir()?.display().to_string()]);
        }
        Ok(flags)
    }

    /// Variables that whoever starts this program elsewhere must have besides those flags; their values are secret, or
    /// concern more than this program.
    pub(crate) fn variables(&self, environment: impl Fn(&str) -> Option<String>) -> Vec<&'static str> {
        let is_set = |name: &&'static str| environment(name).is_some_and(|value| !value.is_empty());
        let catalog = self.text("library.catalog");
        let mut needed = Vec::new();
        if is_set(&DATABASE_PASSWORD_VARIABLE) && !catalog.is_empty()
            || Password::TakenOut.in_address(catalog) != catalog
        {
            needed.push(DATABASE_PASSWORD_VARIABLE);
        }
        let is_noted = self.data_dir().is_ok_and(|folder| folder.join("objects").exists());
        if !catalog.is_empty() || is_noted || self.text("library.objects").starts_with("s3://") {
            needed.extend(BUCKET_VARIABLES.into_iter().filter(is_set));
        }
        needed
    }

    /// The folder of the library.
    pub(crate) fn data_dir(&self) -> anyhow::Result<PathBuf> {
        match self.text("data_dir") {
            "" => {
                let folders = folders().context("this system defines no data folder; use --data-dir")?;
                Ok(folders.data_dir().to_owned())
            }
            path => std::path::absolute(path).context("data_dir"),
        }
    }
}

/// What becomes of the password in an address of a database that is shown or passed on.
#[derive(Clone, Copy)]
enum Password {
    Masked,
    TakenOut,
}

impl Password {
    /// The address with the password treated so, whether it stands before the host or among the parameters.
    fn in_address(self, address: &str) -> String {
        let (base, query) =
            address.split_once('?').map_or((address, None), |(base, query)| (base, Some(query)));
        let base = self.before_host(base).unwrap_or_else(|| base.to_owned());
        let Some(query) = query else { return base };
        let kept: Vec<&str> = query.split('&').filter_map(|pair| self.in_parameter(pair)).collect();
        if kept.is_empty() { base } else { format!("{base}?{}", kept.join("&")) }
    }

    fn before_host(self, base: &str) -> Option<String> {
        let (scheme, rest) = base.split_once("://")?;
        let (user, place) = rest.rsplit_once('@')?;
        let (name, _) = user.split_once(':')?;
        Some(match self {
            Self::Masked => format!("{scheme}://{name}:***@{place}"),
            Self::TakenOut => format!("{scheme}://{name}@{place}"),
        })
    }

    fn in_parameter(self, pair: &str) -> Option<&str> {
        // A password with a question mark that was not escaped ends here, too: there are no other ones with this sign.
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        // A name that is spelled with escapes is not one that anybody needs to see.
        let is_secret =
            name.to_ascii_lowercase().contains("password") || name.contains('%') || pair.contains('@');
        match self {
            _ if !is_secret => Some(pair),
            Self::Masked => Some("password=***"),
            Self::TakenOut => None,
        }
    }
}

/// How an address may be written.
pub(crate) const ADDRESS_FORMS: &str = "an address such as 127.0.0.1:7433, localhost:7433 or 7433";

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_alphanumeric() || "/._-+:,@%=".contains(sign);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The name of a type of TOML in a sentence.
fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// Reads an address. A port alone means this machine, and so does the name `localhost`.
pub(crate) fn parse_address(text: &str) -> Option<SocketAddr> {
    let local = |port: &str| Some(SocketAddr::from(([127, 0, 0, 1], port.parse().ok()?)));
    match text.trim().rsplit_once(':') {
        None => local(text.trim()),
        Some(("" | "localhost", port)) => local(port),
        Some(_) => text.trim().parse().ok(),
    }
}

fn folders() -> Option<ProjectDirs> {
    ProjectDirs::from("", "", "shelfmark")
}

/// The default location of `shelf.toml`.
pub(crate) fn usual_file() -> Option<PathBuf> {
    folders().map(|folders| folders.config_dir().join("shelf.toml"))
}

fn read_file(
    config: Option<&Path>,
    environment: &impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<(PathBuf, Table)>> {
    let named = config
        .map(Path::to_owned)
        .or_else(|| environment(CONFIG_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from));
    let path = match (&named, usual_file()) {
        (Some(path), _) => path.clone(),
        (None, Some(path)) if path.exists() => path,
        (None, _) => return Ok(None),
    };
    let text = std::fs::read_to_string(&path)
        .map_err(|error| anyhow!("cannot read {}: {}", path.display(), crate::outcome::reason(&error)))?;
    let table: Table = text.parse().with_context(|| format!("{} is not valid TOML", path.display()))?;
    check_keys(&path, "", &table)?;
    Ok(Some((path, table)))
}

/// Rejects unknown keys, because a misspelt one would otherwise be ignored silently.
fn check_keys(path: &Path, prefix: &str, table: &Table) -> anyhow::Result<()> {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        if let Value::Table(inner) = value {
            check_keys(path, &format!("{key}."), inner)?;
        } else if !SETTINGS.iter().any(|setting| setting.key == key) {
            let near = shelf_base::nearest(&key, SETTINGS.iter().map(|setting| setting.key), 3);
            let advice = if near.is_empty() {
                "`shelf config show` lists all settings".into()
            } else {
                format!("did you mean {}?", near.join(", "))
            };
            bail!("{}: unknown setting {key}; {advice}", path.display());
        }
    }
    Ok(())
}

fn look_up<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        None => table.get(key),
        Some((section, rest)) => look_up(table.get(section)?.as_table()?, rest),
    }
}

/// Parses the text of an environment variable as a value of the default's type; lists are comma-separated.
fn parse_like(default: &Value, text: &str) -> anyhow::Result<Value> {
    Ok(match default {
        Value::Integer(_) => {
            Value::Integer(text.trim().parse().map_err(|_| anyhow!("'{text}' is not a whole number"))?)
        }
        Value::Boolean(_) => match text.trim() {
            "1" | "true" | "yes" => Value::Boolean(true),
            "0" | "false" | "no" | "" => Value::Boolean(false),
            other => bail!("'{other}' is neither true nor false"),
        },
        Value::Array(_) => list(text),
        _ => Value::String(text.to_owned()),
    })
}

/// Parses a comma-separated list.
pub(crate) fn list(text: &str) -> Value {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    Value::Array(parts.map(|part| Value::String(part.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(
        file: &str,
        flags: &[(&'static str, Value)],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Settings> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shelf.toml");
        std::fs::write(&path, file).unwrap();
        let flags = flags.iter().cloned().collect();
        let environment: BTreeMap<String, String> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Settings::resolve(Some(&path), &flags, |name| environment.get(name).cloned())
    }

    #[test]
    fn flags_beat_environment_beats_file_beats_default() {
        let file = "[http]\nlisten = \"127.0.0.1:1\"\n[limits]\ncall_seconds = 5\n";
        let environment = [("SHELF_HTTP_LISTEN", "127.0.0.1:2"), ("SHELF_TOOLSETS", "store, workspace")];
        let settings =
            resolve(file, &[("http.listen", Value::String("127.0.0.1:3".into()))], &environment).unwrap();
        assert_eq!(settings.text("http.listen"), "127.0.0.1:3");
        assert_eq!(settings.number("limits.call_seconds"), 5);
        assert_eq!(settings.texts("tools.toolsets"), ["store", "workspace"]);
        assert_eq!(settings.number("limits.hello_per_minute"), 100);
        assert!(settings.is_default("log.level"));
    }

    #[test]
    fn passwords_of_addresses_are_not_shown() {
        for (address, masked, without) in [
            ("", "", ""),
            ("postgres://me@db/x", "postgres://me@db/x", "postgres://me@db/x"),
            ("postgres://me:pw@db/x", "postgres://me:***@db/x", "postgres://me@db/x"),
            ("postgres://me:p@w@db/x", "postgres://me:***@db/x", "postgres://me@db/x"),
            ("postgres://me@db/x?password=pw", "postgres://me@db/x?password=***", "postgres://me@db/x"),
            (
                "postgres://me:pw@db/x?sslmode=disable&Password=p@w",
                "postgres://me:***@db/x?sslmode=disable&password=***",
                "postgres://me@db/x?sslmode=disable",
            ),
            (
                "postgres://db/x?options=-c%20a&pass%77ord=pw",
                "postgres://db/x?options=-c%20a&password=***",
                "postgres://db/x?options=-c%20a",
            ),
        ] {
            assert_eq!(Password::Masked.in_address(address), masked, "{address}");
            assert_eq!(Password::TakenOut.in_address(address), without, "{address}");
        }
    }

    #[test]
    fn the_library_is_found_again_by_flags() {
        let catalog = ("SHELF_CATALOG", "postgres://me:pw@db/x?sslmode=disable");
        let settings = resolve("", &[("data_dir", Value::String("/srv/shelf".into()))], &[catalog]).unwrap();
        let flags = settings.flags().unwrap();
        assert!(flags[0] == "--config" && flags[1].starts_with('/'), "{flags:?}");
        assert_eq!(
            flags[2..],
            ["--data-dir", "/srv/shelf", "--catalog", "postgres://me@db/x?sslmode=disable"]
        );
        let environment = |name: &str| (name == "AWS_REGION").then(|| "here".to_owned());
        assert_eq!(settings.variables(environment), ["PGPASSWORD", "AWS_REGION"]);
        let settings = resolve("[library]\ncatalog = \"postgres://me@db/x\"\n", &[], &[]).unwrap();
        assert_eq!(settings.flags().unwrap()[0], "--config");
        assert_eq!(settings.flags().unwrap().len(), 2, "the file says the rest");
    }

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(parse_address(text).map(|found| found.to_string()).as_deref(), expected, "{text}");
        };
        check("127.0.0.1:7433", Some("127.0.0.1:7433"));
        check("localhost:80", Some("127.0.0.1:80"));
        check("8080", Some("127.0.0.1:8080"));
        check(":8080", Some("127.0.0.1:8080"));
        check("[::1]:9", Some("[::1]:9"));
        check("0.0.0.0:0", Some("0.0.0.0:0"));
        for wrong in ["", "host", "example.org:80", "70000", "localhost:", "127.0.0.1"] {
            check(wrong, None);
        }
    }

    #[test]
    fn slips_are_named() {
        let error = resolve("[http]\nlistem = \"x\"\n", &[], &[]).unwrap_err().to_string();
        assert!(error.contains("unknown setting http.listem; did you mean http.listen"), "{error}");
        let error = resolve("[limits]\ncall_seconds = \"x\"\n", &[], &[]).unwrap_err().to_string();
        assert!(error.contains("limits.call_seconds must be an integer, not a string"), "{error}");
        let error = resolve("", &[], &[("SHELF_CALL_SECONDS", "-1")]).unwrap_err().to_string();
        assert!(error.contains("must not be negative (environment SHELF_CALL_SECONDS)"), "{error}");
        let error = format!("{:#}", resolve("", &[], &[("SHELF_CALL_SECONDS", "soon")]).unwrap_err());
        assert!(error.contains("SHELF_CALL_SECONDS: 'soon' is not a whole number"), "{error}");
    }

    #[test]
    fn every_setting_has_a_default_and_every_default_is_a_setting() {
        let defaults: Table = DEFAULT.parse().unwrap();
        check_keys(Path::new("default.toml"), "", &defaults).unwrap();
        assert!(SETTINGS.iter().all(|setting| look_up(&defaults, setting.key).is_some()));
    }
}
