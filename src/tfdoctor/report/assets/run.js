"use strict";

// The bar of the run: tells the piece under the pointer, under a tap, or the one reached with the arrow keys.
class RunBar {
  constructor(root) {
    this.bar = root.querySelector("svg");
    this.output = root.querySelector("output");
    this.pieces = [...this.bar.querySelectorAll("rect")];
    this.words = this.pieces.map((piece) => piece.querySelector("title").textContent);
    this.lefts = this.pieces.map((piece) => piece.x.baseVal.value);
    for (const title of this.bar.querySelectorAll("title")) title.remove(); // else shown twice
    this.hint = "Point at the bar, tap it, or use the arrow keys: phase, time and line.";
    this.output.hidden = false;
    this.at = -1;
    this.become();
    this.listen();
    this.leave();
  }

  // What a screen reader takes the bar for: a slider over its pieces.
  become() {
    const last = this.pieces.length - 1;
    const values = { role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": last, "aria-valuenow": 0 };
    for (const [name, value] of Object.entries(values)) this.bar.setAttribute(name, value);
    this.bar.setAttribute("aria-valuetext", this.words[0]);
  }

  tell(at) {
    this.leave();
    this.at = Math.min(this.pieces.length - 1, Math.max(0, at));
    this.pieces[this.at].classList.add("at");
    this.output.textContent = this.words[this.at];
    this.output.className = "";
    this.bar.setAttribute("aria-valuenow", this.at);
    this.bar.setAttribute("aria-valuetext", this.words[this.at]);
  }

  leave() {
    if (this.at >= 0) this.pieces[this.at].classList.remove("at");
    this.output.textContent = this.hint;
    this.output.className = "quiet";
  }

  // The last piece that begins before a point of the page.
  under(event) {
    const box = this.bar.getBoundingClientRect();
    const x = (1000 * (event.clientX - box.left)) / box.width;
    let [low, high] = [0, this.lefts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.lefts[middle] <= x) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  listen() {
    for (const kind of ["pointermove", "pointerdown"]) {
      this.bar.addEventListener(kind, (event) => this.tell(this.under(event)));
    }
    this.bar.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse" && document.activeElement !== this.bar) this.leave();
    });
    this.bar.addEventListener("focus", () => this.tell(this.at));
    this.bar.addEventListener("blur", () => this.leave());
    const last = this.pieces.length - 1;
    this.bar.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last }[event.key];
      if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.tell(to);
    });
  }
}

for (const root of document.querySelectorAll(".run-bar")) new RunBar(root);
