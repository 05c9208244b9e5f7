// What tests of the page measure in it.

window.measure = {
    // Where each time stands on the axis of the timeline, as a share of its width, and the time in ms.
    times() {
        return [...document.querySelectorAll(".timeline .axis span")].map((tick) => {
            const [value, unit] = tick.textContent.split("\u00a0");
            return [parseFloat(tick.style.left) / 100, value * ({ "\u00b5s": 0.001, s: 1000 }[unit] ?? 1)];
        });
    },

    // The share of each lane that has the line below it of what is marked.
    lit() {
        return [...document.querySelectorAll(".timeline canvas")].map((canvas) => {
            const { data } = canvas.getContext("2d").getImageData(0, canvas.height - 1, canvas.width, 1);
            const ink = getComputedStyle(document.body).color.match(/\d+/g).map(Number);
            let lit = 0;
            for (let at = 0; at < data.length; at += 4) lit += ink.every((value, i) => data[at + i] === value);
            return lit / canvas.width;
        });
    },

    // Which elements are marked.
    marked: () => [...document.querySelectorAll(".lit")].map((one) => one.tagName),

    // Drags the timeline by 40 steps of 5 pixels; gives the time until each is on the screen, in ms.
    frames: () => new Promise((done) => {
        const box = document.querySelector(".timeline canvas"), { left, top } = box.getBoundingClientRect();
        const send = (kind, x) => box.dispatchEvent(new PointerEvent(
            kind, { bubbles: true, clientX: left + x, clientY: top + 5, pointerId: 1 }));
        box.setPointerCapture = () => {};
        document.querySelector("[data-zoom='2']").click();
        send("pointerdown", 400);
        const drawn = [];
        const step = (n) => {
            if (n === 40) { send("pointerup", 0); return done(drawn); }
            send("pointermove", 400 - 5 * n);
            const start = performance.now();
            requestAnimationFrame(() => { drawn.push(performance.now() - start); step(n + 1); });
        };
        requestAnimationFrame(() => step(0));
    }),

    // Each name on the bar of the run, whether it is seen, and what is left beside it, px.
    names() {
        return [...document.querySelectorAll(".run-bar .names span")].map((span) => {
            const [piece, name] = [span, span.querySelector("b")].map((one) => one.getBoundingClientRect());
            return [span.querySelector("b").textContent, name.top < piece.bottom - 1, piece.width - name.width];
        });
    },

    // Where the first bar ends, and where the first legend, the changes and the bar of the step begin, px.
    first() {
        const box = (name) => document.querySelector(name).getBoundingClientRect();
        const tops = [".verdict .legend", ".changes h2", ".verdict h1 ~ .bars"].map((name) => box(name).top);
        return [box(".run-bar, h1 + .bars").bottom, ...tops];
    },

    // What of the account lies outside of the window.
    tooWide() {
        return [...document.querySelectorAll(".run-bar, .phases, .phases *, .run-lines *")]
            .filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML);
    },

    // What of the trials lies outside of the window, or is wider than its place.
    cutOff() {
        return [...document.querySelectorAll(".trials *, .trial *, .key *")]
            .filter((one) => !one.closest(".label, .head"))
            .filter((one) => {
                const box = one.getBoundingClientRect(), text = !one.closest(".scale, i") && one.clientWidth;
                return box.left < 0 || box.right > innerWidth || text && one.scrollWidth > one.clientWidth + 1;
            })
            .map((one) => one.outerHTML);
    },

    // Whether a title may stand on the page before its chart, and whether bars without text are printed.
    onPaper() {
        const style = (name) => getComputedStyle(document.querySelector(name));
        const bars = [".scale .range", ".share i"].map((name) => style(name).printColorAdjust);
        return [style(".group > summary").breakAfter, ...bars];
    },

    // Keeps each text that is drawn, with its place.
    keepTexts() {
        window.written = new Set();
        const fill = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
            window.written.add(`${text} ${Math.round(x)}`);
            return fill.call(this, text, x, ...rest);
        };
    },

    fits: () => document.documentElement.scrollWidth <= innerWidth,
    drawn: (count) => document.querySelectorAll(".js-plotly-plot .main-svg").length >= count,
    unfold() { for (const one of document.querySelectorAll("details")) one.open = true; },
};
