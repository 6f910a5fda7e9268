(() => {
  "use strict";
  const rows = [...document.querySelectorAll("tr[data-run]")];
  const search = document.getElementById("search");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach(row => {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    });
    const found = rows.filter(row => !row.hidden).length;
    document.getElementById("found").textContent = words.length ? `${found} of ${rows.length}` : "";
  });
  const button = document.getElementById("compare");
  const check = () => {
    button.disabled = document.querySelectorAll("input[type=radio]:checked").length < 2;
  };
  document.addEventListener("change", check);
  check();
})();
