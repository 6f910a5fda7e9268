//! `dyno up`: a private server that outlives the command. Another Dyno process, the holder, owns it
//! as a run owns its servers: see `hold.rs`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, anyhow, bail};
use dyno_database::{
    MACHINE, NODES_MAX, NODES_MIN, Product, ProductSpec, Products, REPLICAS_MAX, ReplicationMode,
    SHARDS_MAX,
};
use dyno_host::{Register, Registered};
use dyno_units::ByteCount;
use serde::{Deserialize, Serialize};

use super::products;
use crate::{End, lab, terminal, written};

/// The hidden command that becomes the holder.
const HOLD: &str = "hold";

/// Options of `dyno up`.
#[derive(Clone, clap::Args, Serialize, Deserialize)]
pub(crate) struct UpOptions {
    /// The product, with the beginning of its version: `postgresql@17`
    #[arg(value_name = "PRODUCT@VERSION")]
    product: String,
    /// Name of the server [default: product and version]
    #[arg(long)]
    name: Option<String>,
    /// Where the programs must come from: machine, debian, maven, python
    #[arg(long, value_name = "SOURCE")]
    pub(super) from: Option<String>,
    /// Folder with the server's programs
    #[arg(long, value_name = "FOLDER", conflicts_with = "from")]
    pub(super) programs: Option<PathBuf>,
    /// Container image (Podman or Docker) that contains the programs
    #[arg(long, value_name = "IMAGE",
          conflicts_with_all = ["from", "programs", "memory", "replicas", "cluster", "shards"])]
    pub(super) image: Option<String>,
    /// Fetch the programs if they are not installed, as `dyno products fetch` does, or the image
    #[arg(long)]
    fetch: bool,
    /// Storage engine that tables get by default
    #[arg(long)]
    pub(super) engine: Option<String>,
    /// Server setting; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) setting: Vec<String>,
    /// Memory limit of the server (needs root)
    #[arg(long, value_name = "SIZE")]
    pub(super) memory: Option<ByteCount>,
    /// The folder in which it keeps its data
    #[arg(long, value_name = "FOLDER")]
    data_folder: Option<PathBuf>,
    /// Number of replicas that follow it
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(REPLICAS_MAX)))]
    pub(super) replicas: u32,
    /// What a commit waits for: no replica, or one
    #[arg(long, value_name = "MODE", default_value = ReplicationMode::WORDS[0], requires = "replicas",
          value_parser = ReplicationMode::WORDS)]
    pub(super) replication: String,
    /// Kind of cluster, of which this server is the first node: galera, group-replication
    #[arg(long, value_name = "KIND", conflicts_with_all = ["replicas", "behind"])]
    pub(super) cluster: Option<String>,
    /// Number of nodes in the cluster [default: 3]
    #[arg(long, value_name = "N", requires = "cluster",
          value_parser = clap::value_parser!(u32).range(i64::from(NODES_MIN)..=i64::from(NODES_MAX)))]
    pub(super) nodes: Option<u32>,
    /// Number of shards behind a router
    #[arg(long, value_name = "N", conflicts_with_all = ["replicas", "cluster", "behind"],
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SHARDS_MAX)))]
    pub(super) shards: Option<u32>,
    /// Setting of the router in front of the shards; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "shards")]
    pub(super) router_setting: Vec<String>,
    /// Pooler or proxy in front of it: pgbouncer, haproxy
    #[arg(long, value_name = "ROUTER")]
    pub(super) behind: Option<String>,
    /// Option of that pooler or proxy, such as pool_size=4; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "behind")]
    behind_option: Vec<String>,
}

/// Sent to the holder's standard input.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) product: String,
    pub(super) version: Option<String>,
    pub(super) root: PathBuf,
    pub(super) behind_options: BTreeMap<String, String>,
    /// Paths among them are absolute.
    pub(super) options: UpOptions,
}

/// Sent once by the holder on its standard output.
#[derive(Serialize, Deserialize)]
pub(super) enum Said {
    Up(Registered),
    /// With the reason; nothing was left running.
    Failed(String),
}

pub(crate) fn run(options: &UpOptions) -> anyhow::Result<End> {
    let known = dyno_lab::products();
    if options.product.ends_with('@') {
        let wrong = anyhow!(
            "`{}` has no version after the `@`; write PRODUCT@VERSION, or the product alone",
            dyno_units::redact_url(&options.product)
        );
        return Err(crate::usage_error(wrong));
    }
    let (name, version) = products::named(&options.product);
    let product = product(&known, &options.product).map_err(crate::usage_error)?;
    let behind_options = members(&known, product, options).map_err(crate::usage_error)?;
    let root = lab::data_root(options.data_folder.as_deref())?;
    let keeper = lab::keeper(&root)?.with_builds(lab::builds()?);
    if let Some(image) = &options.image {
        if let Err(error) = keeper.image(image) {
            if !options.fetch {
                return Err(crate::usage_error(error.into()));
            }
            terminal::say(&format!("fetching the image {image}"));
            keeper.pull_image(image)?;
        }
    } else if options.programs.is_none() {
        let wanted = (version, options.from.as_deref());
        if let Err(error) = dyno_database::find_programs(product, wanted, &keeper) {
            if !options.fetch || options.from.as_deref() == Some(MACHINE) {
                return Err(crate::usage_error(error.into()));
            }
            products::fetch_one(product, wanted, &lab::builds()?, &keeper)?;
        }
    }
    let register = Register::open(&lab::register()?)?;
    let name = match &options.name {
        Some(name) => name.clone(),
        None => free_name(&register, name, version),
    };
    let order = Order {
        name,
        product: product.spec.name.clone(),
        version: version.map(str::to_owned),
        root,
        behind_options,
        options: UpOptions {
            programs: options.programs.as_ref().map(std::path::absolute).transpose()?,
            ..options.clone()
        },
    };
    // A wrong setting is reported here: nobody sees the holder's output.
    for (option, pairs) in
        [("--setting", &options.setting), ("--router-setting", &options.router_setting)]
    {
        written::settings(option, pairs, ByteCount(0)).map_err(crate::usage_error)?;
    }
    let registered = start_holder(&order)?;
    terminal::out(&text(&registered));
    Ok(End::Good)
}

/// Whether a product can have these members; also the options of the router.
fn members(
    products: &Products,
    product: &Product,
    options: &UpOptions,
) -> anyhow::Result<BTreeMap<String, String>> {
    let title = &product.spec.title;
    if options.replicas > 0 {
        dyno_database::replicating(product)?;
    }
    if let Some(kind) = &options.cluster {
        dyno_database::clustering(product, kind)?;
    }
    if options.shards.is_some() {
        dyno_database::sharding(product)?;
    }
    let Some(behind) = &options.behind else { return Ok(BTreeMap::new()) };
    let router = products.router(behind)?.spec();
    if !router.fronts.contains(&product.spec.name.as_str()) {
        bail!(
            "{} cannot be placed in front of {title}; it speaks the protocol of {}",
            router.title,
            router.fronts.join(", ")
        );
    }
    let option = |pair: &String| {
        let (name, value) = written::pair("--behind-option", pair)?;
        let Some(known) = router.options.iter().find(|option| option.name == name) else {
            let names: Vec<&str> = router.options.iter().map(|one| one.name.as_ref()).collect();
            bail!("{} has no option `{name}`; it has {}", router.title, names.join(", "));
        };
        known.check(value)?;
        Ok((name.to_owned(), value.to_owned()))
    };
    options.behind_option.iter().map(option).collect()
}

fn product<'a>(products: &'a Products, wanted: &str) -> anyhow::Result<&'a Product> {
    let name = products::named(wanted).0;
    let Some(product) = products.find(name) else {
        let words: Vec<&str> = products.names();
        let hint = crate::hints::did_you_mean(name, &words);
        let hint = hint.map_or_else(|| ".".to_owned(), |hint| format!("; {hint}"));
        bail!(
            "there is no product `{}`{hint} `up` can start {}. A server that is already running is reached \
             by its URL, in `dyno bench --on` or in a study",
            products::shown(wanted),
            startable(products)
        );
    };
    if !is_startable(&product.spec) {
        bail!(
            "{} has no server to start; `up` starts private servers of {}",
            product.spec.title,
            startable(products)
        );
    }
    Ok(product)
}

pub(super) fn is_startable(spec: &ProductSpec) -> bool {
    !spec.is_embedded && !spec.is_simulated && spec.dialect.is_some()
}

/// `mariadb, postgresql`.
fn startable(products: &Products) -> String {
    let names = products.names().into_iter();
    let is_one = |name: &&str| products.spec(name).is_some_and(is_startable);
    names.filter(is_one).collect::<Vec<_>>().join(", ")
}

/// `postgresql-17`, or `postgresql-17-2` if that is taken.
fn free_name(register: &Register, product: &str, version: Option<&str>) -> String {
    let base = version.map_or_else(|| product.to_owned(), |version| format!("{product}-{version}"));
    super::numbered(&base).find(|name| register.find(name).is_none()).unwrap_or_default()
}

/// Waits until the holder's servers are up.
fn start_holder(order: &Order) -> anyhow::Result<Registered> {
    let program = std::env::current_exe().context("cannot find this program's own executable")?;
    let mut holder = Command::new(program)
        .arg(HOLD)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the process that keeps the server running")?;
    match converse(&mut holder, order)? {
        Said::Up(registered) => Ok(registered),
        Said::Failed(why) => Err(anyhow!(why)),
    }
}

fn converse(holder: &mut Child, order: &Order) -> anyhow::Result<Said> {
    let mut input = holder.stdin.take().context("the holder has no input")?;
    input.write_all(&serde_json::to_vec(order)?).context("the holder does not listen")?;
    drop(input);
    let output =
        holder.stdout.take().context("the process that keeps the server running has no output")?;
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .context("cannot read from the process that keeps the server running")?;
    if line.is_empty() {
        let status =
            holder.wait().context("cannot wait for the process that keeps the server running")?;
        bail!(
            "the process that keeps the server running ended ({status}) before the server was up"
        );
    }
    serde_json::from_str(&line)
        .context("the process that keeps the server running is from a different version of Dyno")
}

fn text(registered: &Registered) -> String {
    let Registered { name, members, .. } = registered;
    if let [first, others @ ..] = members.as_slice() {
        let names: Vec<&str> = others.iter().map(|one| one.name.as_str()).collect();
        let with = match others {
            [] => String::new(),
            _ => format!(", with {}", names.join(", ")),
        };
        terminal::say(&format!(
            "{name}: {} {} is up{with}; `dyno connect {name}` opens its client, `dyno down {name}` removes it \
             with its data",
            first.product, first.version
        ));
    }
    members.iter().map(|member| format!("{}\n", member.url)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::open(&folder.path().join("up")).unwrap();
        assert_eq!(free_name(&register, "db", Some("1.2")), "db-1.2");
        let _first = register.hold("db-1.2").unwrap();
        let _second = register.hold("db-1.2-2").unwrap();
        assert_eq!(free_name(&register, "db", Some("1.2")), "db-1.2-3");
        assert_eq!(free_name(&register, "db", None), "db");
    }

    #[test]
    fn only_products_with_servers_stay() {
        let products = dyno_lab::products();
        assert!(product(&products, "mariadb").is_ok());
        let error = |name: &str| product(&products, name).err().unwrap().to_string();
        assert!(error("sqlite").contains("no server to start"));
        assert!(error("pg").contains("postgresql"), "{}", error("pg"));
    }
}
