  // What can be taken from the page: pictures and data of charts, text of tables, links.

  const plain = text => text.replace(/\s+/g, " ").trim();
  const slug = text => plain(text).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "dyno";
  const download = (name, address) => {
    const link = element("a");
    link.download = name;
    link.href = address;
    document.body.appendChild(link);
    link.click();
    link.remove();
  };
  const save = (name, type, content) => {
    const address = URL.createObjectURL(new Blob([content], { type }));
    download(name, address);
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };
  // Without a clipboard of its own (an old browser, a page that was opened in an odd way) the text is
  // selected in a field and copied from there.
  function copy(text, done) {
    const byField = () => {
      const field = element("textarea");
      field.value = text;
      field.style.position = "fixed";
      document.body.appendChild(field);
      field.select();
      let isDone = false;
      try { isDone = document.execCommand("copy"); } catch { /* not allowed */ }
      field.remove();
      return isDone;
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => done(true), () => done(byField()));
    else done(byField());
  }

  // As in export/text.rs and document/markdown.rs, but for negative numbers, which are texts here.
  // guards {
  const asField = text => {
    if (/^-[\d.][\d.,\s%()×–-]*( to [\d.,\s%()×–-]*)?$/.test(text)) return text;
    let out = "", isStart = true;
    for (const c of text) {
      out += isStart && "=+-@\t\r＝＋－＠".includes(c) ? "'" + c : c;
      isStart = ";\t\n\r".includes(c);
    }
    return out;
  };
  const harmless = text => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ").replace(/&/g, "&amp;")
    .replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/[\\`*_[\]|#~]/g, "\\$&").replace(/@/g, "@\u200b")
    .replace(/\$/g, "<span>$$</span>").replace(/#(?=\d)|GH-(?=\d)|(https?|ftp):|www\./gi, "$&\u200b");
  // }

  // Rows of texts as CSV, Markdown, or columns of plain text.
  const asCsv = rows => rows.map(row => row.map(value => {
    const text = asField(String(value ?? "").replace(/−/g, "-"));
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, "\"\"")}"` : text;
  }).join(",")).join("\r\n") + "\r\n";
  const isNumeric = (rows, i) => rows.slice(1).every(row =>
    /^([<≤≥±✓✗=? ]*[+−-]?[\d.,]|NA$|–|nonzero$|$)/.test(row[i] ?? ""));
  const asMarkdown = rows => {
    const line = cells => `| ${cells.map(text => harmless(text ?? "")).join(" | ")} |\n`;
    const rule = rows[0].map((_, i) => isNumeric(rows, i) ? "---:" : "---");
    return line(rows[0]) + `|${rule.join("|")}|\n` + rows.slice(1).map(line).join("");
  };
  const asText = rows => {
    const widths = rows[0].map((_, i) => Math.max(...rows.map(row => (row[i] ?? "").length)));
    const numeric = rows[0].map((_, i) => isNumeric(rows, i));
    // A line that is pasted into a spreadsheet becomes one field.
    const line = row => widths.map((width, i) =>
      numeric[i] ? (row[i] ?? "").padStart(width) : (row[i] ?? "").padEnd(width)).join("  ").trimEnd();
    return rows.map(row => asField(line(row))).join("\n") + "\n";
  };
  const cellText = cell => {
    const bare = cell.cloneNode(true);
    all("svg,.more,data,.again", bare).forEach(e => e.remove());
    all("small,i,br,div,.badge", bare).forEach(e => e.before(" "));
    return plain(bare.textContent);
  };
  // All rows of a table, the same number of cells in each.
  const gridRows = table => {
    const rows = all("tr", table).filter(row => !row.hidden && !row.classList.contains("why")).map(row =>
      [...row.cells].flatMap(cell => [cellText(cell), ...Array(cell.colSpan - 1).fill("")]));
    const width = Math.max(0, ...rows.map(row => row.length));
    return rows.map(row => [...row, ...Array(width - row.length).fill("")]);
  };

  // The data of a chart. Lines are read from what is drawn: their values are exact to a two-thousandth
  // of the axis.
  const across = { seconds: "second", times: "response time (µs)", nines: "percentile" };
  const lineRows = chart => {
    const at = x => chart.kind === "seconds" ? +x.toFixed(3)
      : chart.kind === "times" ? +(10 ** x).toPrecision(5)
        : x >= chart.x1 - 0.15 ? "max" : +((1 - 10 ** -x) * 100).toPrecision(8);
    const lines = all("path[data-n]", chart.inner).filter(path => !isHidden(path));
    const found = new Map();
    lines.forEach((path, i) => points(path).forEach(([x, y]) => {
      if (!found.has(x)) found.set(x, Array(lines.length).fill(""));
      found.get(x)[i] = +valueAt(chart, y).toPrecision(6);
    }));
    const unit = chart.unit ? ` (${chart.unit === "us" ? "µs" : chart.unit})` : "";
    return [[across[chart.kind], ...lines.map(path => path.dataset.n + unit)]]
      .concat([...found].sort((a, b) => a[0] - b[0]).map(([x, values]) => [at(x / chart.factor + chart.x0), ...values]));
  };
  const heatRows = chart => {
    const [, v, step, kind] = chart.heat.match(/^(\d+) (\d+) (.*)$/s);
    const data = gridOf(v, step, kind);
    const rows = [["second", "response time from (µs)", "to (µs)", "transactions"]];
    if (!data) return rows;
    const edge = bucket => +(2 ** (bucket / 8) / 1000).toPrecision(5);
    columnsOf(data).forEach((column, i) => column.counts.forEach(([bucket, n]) => {
      if (n) rows.push([+data.dataset.from + i * data.dataset.column, edge(bucket), edge(bucket + 1), n]);
    }));
    return rows;
  };
  const tipOf = k => k.querySelector("title")?.textContent
    ?? marks.flatMap(chart => chart.tips).find(tip => tip.element === k)?.text ?? "";
  const markRows = svg => {
    const own = all(".k[data-y]", svg).filter(k => !isHidden(k.parentNode)).map(k => {
      const text = tipOf(k), colon = text.lastIndexOf(": "), name = colon < 0 ? text : text.slice(0, colon);
      const dot = name.lastIndexOf(" · ");
      const numbers = k.dataset.y.split(" ").map(n => n === "-" ? "" : n);
      return [dot < 0 ? name : name.slice(0, dot), dot < 0 ? "" : name.slice(dot + 3), ...numbers];
    });
    const n = Math.max(0, ...own.map(row => row.length - 5));
    const head = ["variant", "step", "value", "low", "high", ...Array.from({ length: n }, (_, i) => `repetition ${i + 1}`)];
    return [head, ...own.map(row => [...row, ...Array(head.length - row.length).fill("")])];
  };
  const chartRows = svg => {
    const chart = charts.find(c => c.svg === svg);
    if (!chart) return markRows(svg);
    return chart.heat ? heatRows(chart) : lineRows(chart);
  };

  // A chart as a picture that stands alone: title and note above it, and every style written out.
  const styles = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity",
    "stroke-linecap", "stroke-linejoin", "opacity", "vector-effect", "font-family", "font-size", "font-weight",
    "text-anchor", "display", "shape-rendering", "image-rendering", "overflow", "paint-order"];
  const dress = (from, to) => {
    const given = getComputedStyle(from);
    styles.forEach(name => to.style.setProperty(name, given.getPropertyValue(name)));
    to.removeAttribute("class");
    to.removeAttribute("tabindex");
    [...from.children].forEach((child, i) => dress(child, to.children[i]));
  };
  const picture = svg => {
    const box = svg.viewBox.baseVal, caption = svg.closest("figure")?.querySelector("figcaption");
    const title = plain(caption?.querySelector("b")?.textContent || svg.getAttribute("aria-label"));
    const note = plain(caption?.querySelector(":scope > span:not(.more)")?.textContent || "");
    const page = getComputedStyle(document.body);
    const copied = svg.cloneNode(true);
    dress(svg, copied);
    // On the page the bar of variants is the key; a picture has its own, unless its lines or rows have names.
    const isNamed = "rows" in svg.dataset || svg.querySelector(".end");
    const drawn = isNamed ? [] : keys.filter(k => svg.querySelector(`.v${k.dataset.variant}`));
    const names = drawn.length > 1 ? drawn.map(k => [k.querySelector(".l"), k.querySelector("svg").nextSibling.textContent]) : [];
    const wide = 40 + 6.4 * Math.max(0, ...names.map(([, name]) => name.length));
    const inRow = Math.max(1, Math.floor((box.width - 20) / wide));
    const above = note ? 50 : 32, head = above + 16 * Math.ceil(names.length / inRow);
    const sheet = make("svg", { viewBox: `0 0 ${box.width} ${box.height + head}`, width: box.width,
      height: box.height + head });
    sheet.appendChild(make("rect", { width: box.width, height: box.height + head,
      fill: page.backgroundColor }));
    const write = (text, y, size, weight, colour, x = 10) => {
      const line = sheet.appendChild(make("text", { x, y, fill: colour, "font-size": size, "font-weight": weight,
        "font-family": page.fontFamily }));
      line.textContent = text;
    };
    const quiet = getComputedStyle(root).getPropertyValue("--quiet").trim() || "#666";
    write(title, 20, 14, 600, page.color);
    if (note) write(note, 37, 11, 400, quiet);
    names.forEach(([line, name], i) => {
      const x = 10 + i % inRow * wide, y = above + 8 + 16 * Math.floor(i / inRow), given = getComputedStyle(line);
      sheet.appendChild(make("path", { d: `M${x} ${y - 4}h18`, fill: "none", stroke: given.stroke, "stroke-width": 2,
        "stroke-dasharray": given.strokeDasharray }));
      write(name, y, 11, 400, quiet, x + 24);
    });
    const plot = make("svg", { y: head, width: box.width, height: box.height,
      viewBox: `0 0 ${box.width} ${box.height}` });
    plot.style.overflow = "visible";
    plot.append(...copied.childNodes);
    sheet.appendChild(plot);
    return { title, width: box.width, height: box.height + head, text: new XMLSerializer().serializeToString(sheet) };
  };
  const savePng = svg => {
    const { title, width, height, text } = picture(svg);
    const image = new Image(), scale = 2;
    image.addEventListener("load", () => {
      const canvas = element("canvas");
      canvas.width = width * scale;
      canvas.height = height * scale;
      const pen = canvas.getContext("2d");
      pen.scale(scale, scale);
      pen.drawImage(image, 0, 0, width, height);
      download(slug(title) + ".png", canvas.toDataURL("image/png"));
    });
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  };

  // One menu for all of them; it belongs to the button that opened it.
  const menu = element("div", "menu");
  menu.setAttribute("role", "menu");
  menu.hidden = true;
  let opener = null;
  const closeMenu = () => {
    if (menu.hidden) return;
    menu.hidden = true;
    opener?.setAttribute("aria-expanded", "false");
    opener = null;
  };
  const openMenu = (button, items, back) => {
    const isSame = opener === button;
    closeMenu();
    if (isSame) return;
    opener = button;
    button.setAttribute("aria-expanded", "true");
    menu.textContent = "";
    items.forEach(([name, act]) => {
      const item = menu.appendChild(element("button", "", name));
      item.type = "button";
      item.tabIndex = -1;
      item.setAttribute("role", "menuitem");
      item.addEventListener("click", () => {
        closeMenu();
        (back || button).focus({ preventScroll: true });
        act(button);
      });
    });
    button.after(menu);
    menu.hidden = false;
    menu.classList.toggle("left", button.getBoundingClientRect().left < 190);
    menu.firstChild.focus({ preventScroll: true });
    menu.back = back || button;
  };
  menu.addEventListener("keydown", event => {
    const items = [...menu.children], at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 }[event.key];
    if (to !== undefined) items[to % items.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") {
      const { back } = menu;
      closeMenu();
      back.focus({ preventScroll: true });
      if (event.key === "Tab") return;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  addEventListener("pointerdown", event => {
    if (!menu.hidden && !menu.contains(event.target) && event.target !== opener) closeMenu();
  });
  const moreButton = label => {
    const button = element("button", "more", "⋯");
    button.type = "button";
    button.setAttribute("aria-label", label);
    button.title = label;
    button.setAttribute("aria-haspopup", "menu");
    button.setAttribute("aria-expanded", "false");
    return button;
  };
  const flash = (button, text) => {
    const told = element("span", "told", text);
    told.setAttribute("role", "status");
    button.after(told);
    setTimeout(() => told.remove(), 1600);
  };
  const copied = (button, text) => copy(text, isDone => flash(button, isDone ? "Copied" : "The browser did not allow it"));

  const figures = [];
  const chartItems = figure => {
    const svg = figure.querySelector("svg.ch"), name = () => slug(picture(svg).title);
    return [
      ["Picture (PNG)", () => savePng(svg)],
      ["Picture (SVG)", () => save(name() + ".svg", "image/svg+xml", picture(svg).text)],
      ["Data as drawn (CSV)", () => save(name() + ".csv", "text/csv", asCsv(chartRows(svg)))],
      ["Copy data (CSV)", button => copied(button, asCsv(chartRows(svg)))],
      ["Copy link to this chart", button => {
        chosen.chart = String(figures.indexOf(figure));
        keep();
        copied(button, location.href);
      }],
    ];
  };
  // A chart gets its menu, and the charts of a group are one stop of the tab key: arrows go up and down
  // among them.
  function equip(figure) {
    const svg = figure.querySelector("svg.ch");
    if (!svg) return;
    figures.push(figure);
    const button = moreButton("Save or copy this chart: picture, data, link");
    button.tabIndex = -1;
    figure.prepend(button);
    button.addEventListener("click", () => openMenu(button, chartItems(figure), svg));
    svg.setAttribute("aria-description",
      "Left and right arrow keys read values, or with Shift select a period; up and down arrow keys move to other charts; M opens the menu.");
    const others = () => all("svg.ch", figure.parentNode).filter(other => other.getClientRects().length > 0);
    svg.tabIndex = figure.parentNode.querySelector("svg.ch") === svg ? 0 : -1;
    svg.addEventListener("focus", () => {
      all("svg.ch", figure.parentNode).forEach(other => { other.tabIndex = other === svg ? 0 : -1; });
    });
    svg.addEventListener("keydown", event => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        const list = others();
        list[list.indexOf(svg) + step]?.focus();
      } else if (event.key === "m" || event.key === "M" || event.key === "Enter") openMenu(button, chartItems(figure), svg);
      else return;
      event.preventDefault();
    });
  }
  all("main figure").forEach(equip);
  // Where the first chart of a group is hidden, another one has to be the stop.
  const stops = () => all(".charts").forEach(group => {
    const list = all("svg.ch", group), seen = list.filter(svg => svg.getClientRects().length > 0);
    if (seen.length && !seen.some(svg => svg.tabIndex === 0)) {
      list.forEach(svg => { svg.tabIndex = svg === seen[0] ? 0 : -1; });
    }
  });
  addEventListener("focusin", event => { if (event.target.closest(".legend,.chooser")) stops(); });

  const tableItems = table => {
    const rows = () => gridRows(table);
    const title = plain(table.caption?.firstChild?.textContent || table.closest("section")?.querySelector("h2")?.textContent || "table");
    return [
      ["Copy as text", button => copied(button, asText(rows()))],
      ["Copy as Markdown", button => copied(button, asMarkdown(rows()))],
      ["Copy as CSV", button => copied(button, asCsv(rows()))],
      ["Save as CSV", () => save(slug(title) + ".csv", "text/csv", asCsv(rows()))],
    ];
  };
  all("main table").filter(table => table.rows.length > 1).forEach(table => {
    const tools = element("div", "tools"), button = moreButton("Copy this table: text, Markdown, CSV");
    tools.appendChild(button);
    button.addEventListener("click", () => openMenu(button, tableItems(table)));
    (table.closest(".scroll") || table).before(tools);
  });
  // The buttons of a section's tables are one stop of the tab key; arrows go up and down among them.
  all("main section").forEach(section => {
    const buttons = all(".tools .more", section);
    const seen = () => buttons.filter(button => button.getClientRects().length > 0);
    buttons.forEach(button => {
      button.tabIndex = -1;
      button.addEventListener("focus", () => buttons.forEach(other => { other.tabIndex = other === button ? 0 : -1; }));
      button.addEventListener("keydown", event => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (!step || !menu.hidden) return;
        const list = seen();
        list[list.indexOf(button) + step]?.focus();
        event.preventDefault();
      });
    });
    section.addEventListener("focusin", () => {
      const list = seen();
      if (list.length && !list.some(button => button.tabIndex === 0)) list[0].tabIndex = 0;
    });
    const first = seen()[0];
    if (first) first.tabIndex = 0;
  });

  // The readings of a table are one stop of the tab key, too.
  all("table.counters").forEach(table => {
    const picks = all(".pick", table);
    picks.forEach((pick, i) => {
      pick.tabIndex = i ? -1 : 0;
      pick.addEventListener("keydown", event => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (!step) return;
        const seen = picks.filter(other => other.getClientRects().length > 0);
        const next = seen[seen.indexOf(pick) + step];
        if (next) {
          picks.forEach(other => { other.tabIndex = other === next ? 0 : -1; });
          next.focus();
        }
        event.preventDefault();
      });
    });
  });

  // A table that is wider than the page is reached and scrolled by keys.
  const scrollers = all("main .scroll");
  const markScrollers = () => scrollers.forEach(box => {
    const isWide = box.scrollWidth > box.clientWidth + 2;
    if (isWide) box.tabIndex = 0; else box.removeAttribute("tabindex");
    if (isWide && !box.hasAttribute("role")) {
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", "Table, scrolls horizontally");
    }
  });
  addEventListener("resize", markScrollers);
  addEventListener("load", markScrollers);

  // The baseline that differences are shown against. Of the study's own one there are verdicts; of the
  // others the findings hold effects, each with an interval of its own.
  const bases = one("bases");
  const others = new Map();
  (bases?.value || "").split(";").filter(Boolean).forEach(entry => {
    const [metric, variant, base, step, percent, low, high] = entry.split(" ");
    others.set([metric, variant, base, step].join(" "), [percent, low, high].map(n => n === "-" ? null : +n));
  });
  const baseCells = all(".bases td[data-at]").map(cell => ({ cell, nodes: [...cell.childNodes], className: cell.className }));
  const setBase = base => {
    const select = one("base");
    if (!select) return;
    chosen.base = [...select.options].some(option => option.value === base) ? base : "";
    select.value = chosen.base;
    all(".base-note").forEach(note => { note.hidden = (note.dataset.of === "study") !== (chosen.base === ""); });
    baseCells.forEach(({ cell, nodes, className }) => {
      const [variant, step] = cell.dataset.at.split(" "), metric = cell.closest("table").dataset.metric;
      const own = cell.dataset.base;
      cell.className = className;
      if (chosen.base === "" || chosen.base === own) {
        cell.replaceChildren(...nodes);
        return;
      }
      cell.classList.remove("better", "worse");
      const found = others.get([metric, variant, chosen.base, step].join(" "));
      if (variant === chosen.base) cell.replaceChildren(element("i", "", "baseline"));
      else if (!found) cell.replaceChildren("–");
      else {
        const [percent, low, high] = found;
        const bounds = low === null || high === null ? "no CI" : `${asEffect(low)} to ${asEffect(high)}`;
        cell.replaceChildren(element("b", "", asEffect(percent)), element("small", "", bounds));
      }
    });
  };
  one("base")?.addEventListener("change", () => { setBase(one("base").value); keep(); });

  // The bar of variants takes one line; the others unfold.
  const keyBar = document.querySelector(".legend .keys");
  if (keyBar && keyBar.scrollHeight > keyBar.clientHeight + 4) {
    const fold = element("button", "unfold", `All ${keys.length} variants`);
    fold.type = "button";
    fold.setAttribute("aria-expanded", "false");
    keyBar.after(fold);
    const setOpen = isOpen => {
      legend.classList.toggle("open", isOpen);
      fold.setAttribute("aria-expanded", String(isOpen));
      fold.textContent = isOpen ? "Show fewer" : `All ${keys.length} variants`;
      measure();
    };
    fold.addEventListener("click", () => setOpen(!legend.classList.contains("open")));
    legend.addEventListener("focusin", event => { if (event.target.classList.contains("key")) setOpen(true); });
    measure();
  }

  // Paper: what is folded stays folded, and a table that does not fit is not made so small that nobody can read it.
  const PAGE = 690, PRINT_TEXT = 0.68;
  addEventListener("beforeprint", () => {
    closeMenu();
    clear();
    all("main .scroll").forEach(box => {
      const strips = all("thead th.strip", box).reduce((sum, strip) => sum + strip.offsetWidth, 0);
      const wide = (box.querySelector("table").offsetWidth - strips) * PRINT_TEXT;
      box.classList.toggle("left-out", wide > PAGE);
      box.dataset.leftOut = "This table is wider than paper: it is in the report's file.";
    });
  });

