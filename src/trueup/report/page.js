// Unpacks the plotting library and the figures, which the page carries compressed, and draws them in the page's colours.
(async () => {
  const plots = [...document.querySelectorAll(".plot")];
  const say = (plot, text) => { plot.replaceChildren(Object.assign(document.createElement("p"), { className: "note", textContent: text })); };
  const unpack = (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };

  const colours = (layout) => {
    const css = getComputedStyle(document.documentElement);
    const [ink, line, card] = ["--ink", "--line", "--card"].map((name) => css.getPropertyValue(name).trim());
    const change = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", "font.color": ink,
      "legend.bgcolor": "rgba(0,0,0,0)", "hoverlabel.bgcolor": card, "hoverlabel.font.color": ink, "hoverlabel.bordercolor": line,
      "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": line, "modebar.activecolor": ink,
    };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
      Object.assign(change, { [axis + ".gridcolor"]: line, [axis + ".zerolinecolor"]: line, [axis + ".linecolor"]: line });
    }
    return change;
  };

  try {
    if (!plots.length) return;
    const library = document.createElement("script");
    library.textContent = await unpack("plot-library");
    document.head.append(library);
    const touch = matchMedia("(pointer: coarse)").matches;
    const draw = async (plot) => {
      const figure = JSON.parse(await unpack(plot.dataset.figure));
      if (touch) figure.layout.dragmode = false; // a finger scrolls the page; the buttons zoom
      plot.replaceChildren();
      await Plotly.newPlot(plot, figure.data, figure.layout, { responsive: true, displaylogo: false });
      await Plotly.relayout(plot, colours(plot.layout));
      plot.dataset.drawn = "yes";
    };
    for (const plot of plots) {
      const fold = plot.closest("details");
      if (!fold || fold.open) { await draw(plot); continue; }
      const open = () => {
        if (!fold.open || plot.dataset.drawn) return;
        fold.removeEventListener("toggle", open);
        draw(plot).catch((error) => say(plot, "This plot cannot be drawn here (" + error.message + ")."));
      };
      fold.addEventListener("toggle", open);
    }
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const plot of plots.filter((plot) => plot.dataset.drawn)) Plotly.relayout(plot, colours(plot.layout));
    });
  } catch (error) {
    for (const plot of plots.filter((plot) => !plot.dataset.drawn)) {
      say(plot, "This plot cannot be drawn here (" + error.message + "). A browser from 2023 or later can.");
    }
    throw error;
  }
})();
