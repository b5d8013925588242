// Actions of the page: forms, buttons, the slider and keys. What can't be done now is grey, stays
// reachable by keyboard, and says why.
import { byId, dialogOf, element, formatOf, inputOf, rate, setText, short } from "./format.js";

/** @import { Hello, Key, Series, State, Values } from "./types.d.ts" */

const STOPS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
const LEAST_PER_S = 10,
  MOST_PER_S = 1e6,
  SLIDER_WAITS_MS = 250;
// Kinds that a workload lacks are shown with a reason.
const OTHER_KINDS = ["purchases", "updates", "deletes", "reads"];
const NO_TOKEN = "Open the address that the terminal printed: it carries the token.";
const NOT_CONNECTED = "The connection to the session is lost.";

/**
 * @typedef {{ target: string, status: HTMLElement, cpu: HTMLElement, memory: HTMLElement,
 *   hold: { target: string, button: HTMLElement } | null }} Service
 */

/**
 * Rates of the slider: 0, then ten to a decade.
 * @param {number} most
 */
const sliderRates = (most) => {
  const rates = [0];
  for (let power = LEAST_PER_S; power <= most; power *= 10)
    rates.push(...STOPS.map((stop) => Math.round(stop * power)).filter((perS) => perS <= most));
  return rates;
};

/**
 * @param {string} selector
 * @param {ParentNode} [within]
 */
const elements = (selector, within = document) =>
  [...within.querySelectorAll(selector)].filter((one) => one instanceof HTMLElement);

/** @param {HTMLElement} place */
const controlOf = (place) => place.dataset.control ?? "";

export class Controls {
  #token = new URLSearchParams(location.hash.slice(1)).get("token");
  /**
   * Why an action is not possible now, by control; from the server.
   * @type {Record<string, string>}
   */
  #reasons = {};
  #isBegun = false;
  #connected = false;
  #ended = false;
  #rates = sliderRates(MOST_PER_S);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #sliderTimer;
  #perS = 0; // rate of the session
  /** @type {Map<string, Service>} */
  #services = new Map();
  /** @type {Map<string, { now: HTMLElement }>} */
  #kinds = new Map();

  constructor() {
    for (const form of /** @type {NodeListOf<HTMLFormElement>} */ (
      document.querySelectorAll("form[data-action]")
    )) {
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.#submit(form);
      });
    }
    this.#buildSlider();
    byId("ask-end").addEventListener("click", () => {
      if (this.#allowed("end")) dialogOf("end").showModal();
    });
    const dialog = dialogOf("end");
    dialog.addEventListener("close", () => {
      if (dialog.returnValue === "end") this.act("end", "end", {});
      dialog.returnValue = "";
    });
    this.#show();
  }

  /**
   * Makes the controls that differ between sessions.
   * @param {Hello} hello
   */
  begin(hello) {
    this.#isBegun = true;
    const most = hello.kinds.find((kind) => kind.name === "events")?.most_per_s ?? MOST_PER_S;
    this.#rates = sliderRates(Math.min(most, MOST_PER_S));
    this.#labelSlider();
    inputOf("profile").placeholder =
      (hello.profiles.find(({ name }) => name === "spike") ?? hello.profiles.at(-1))?.example ?? "";
    byId("profiles").replaceChildren(
      ...hello.profiles.map(({ example, form }) => element("option", { value: example }, form)),
    );
    byId("profile").title = hello.profiles.map(({ name, form }) => `${name} ${form}`).join("\n");
    this.#buildServices(hello);
    setText(byId("folder"), hello.folder);
  }

  /**
   * @param {boolean} connected
   * @param {boolean} [ended]
   */
  connect(connected, ended = false) {
    this.#connected = connected;
    this.#ended = ended;
    this.#show();
  }

  /** @param {State} state */
  update(state) {
    this.#reasons = state.controls;
    this.#buildKinds(state);
    this.#perS = state.rates.events;
    setText(
      byId("mode"),
      state.load
        ? `profile: ${state.load}`
        : state.load_stopped || (Number.isFinite(this.#perS) ? "constant" : "\u00a0"),
    );
    if (!this.#sliderTimer) this.#showRate(this.#perS);
    const statuses = new Map(
      [...state.services, ...state.engines].map(
        ({ name, status }) => /** @type {const} */ ([name, status]),
      ),
    );
    for (const { target, status } of this.#services.values())
      this.#showStatus(status, statuses.get(target) ?? "");
    for (const [name, kind] of this.#kinds)
      setText(kind.now, name in state.rates ? `${rate(state.rates[name])} /s` : "–");
    this.#show();
  }

  /**
   * @param {Series[]} series
   * @param {Values} values
   */
  figures(series, values) {
    for (const { id, service, group, unit } of series) {
      if (!service || (group !== "cpu" && group !== "memory")) continue;
      const place = this.#services.get(service)?.[group];
      if (place) setText(place, formatOf(unit)(values[id]));
    }
  }

  /**
   * Steps the slider from the keyboard wherever the focus is.
   * @param {number} by
   */
  step(by) {
    const slider = inputOf("slider");
    if (!this.#allowed("rate")) return;
    slider.valueAsNumber += by;
    slider.dispatchEvent(new Event("input"));
  }

  /**
   * Requests an action; returns whether it was accepted.
   * @param {string} action
   * @param {string} control
   * @param {object} body
   */
  async act(action, control, body) {
    if (!this.#allowed(control)) return false;
    try {
      const answer = await fetch(`/actions/${action}`, {
        method: "POST",
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(10_000),
        headers: { "Content-Type": "application/json", "X-Racetrack-Token": this.#token ?? "" },
      });
      const { error } = await answer.json();
      this.#answer(error || "", !answer.ok);
      return answer.ok;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#answer(
        `The session did not answer: ${why}. It may have ended; see the terminal.`,
        true,
      );
      return false;
    }
  }

  /**
   * @param {string} text
   * @param {boolean} isError
   */
  #answer(text, isError) {
    byId("answer").className = isError ? "bad" : "";
    byId("answer").textContent = text || "\u00a0";
  }

  /** @param {string} control */
  #reason(control) {
    if (this.#ended) return "The session has ended.";
    if (!this.#connected) return NOT_CONNECTED;
    if (!this.#token) return NO_TOKEN;
    return this.#reasons[control] ?? "The session does not offer this.";
  }

  /** @param {string} control */
  #allowed(control) {
    const reason = this.#reason(control);
    if (reason) this.#answer(reason, true);
    return !reason;
  }

  #show() {
    // A reason that concerns all controls is shown once, not for each.
    const all = this.#reason("note");
    setText(byId("why-not"), this.#isBegun ? all || this.#reason("rate") : "");
    for (const { hold } of this.#services.values()) if (hold) this.#showHold(hold);
    for (const control of elements("[data-control]")) {
      const reason = this.#reason(controlOf(control));
      control.setAttribute("aria-disabled", String(Boolean(reason)));
      control.title = reason;
      if (!(control instanceof HTMLInputElement)) continue;
      control.readOnly = Boolean(reason);
      if (control.type === "range") control.disabled = Boolean(reason);
    }
    for (const place of elements("[data-reasons]")) {
      const beside = elements("button[data-control]", place.parentElement ?? document).map(
        controlOf,
      );
      const found = beside
        .map((control) => this.#reasons[control])
        .filter((reason) => reason && reason !== all);
      setText(place, [...new Set(found)].join(" "));
    }
  }

  /**
   * @param {HTMLElement} place
   * @param {string} status
   */
  #showStatus(place, status) {
    setText(place, status);
    place.dataset.status = status;
  }

  /**
   * A single button pauses and resumes.
   * @param {{ target: string, button: HTMLElement }} hold
   */
  #showHold(hold) {
    const { target, button } = hold;
    const isPaused = this.#reasons[`resume/${target}`] === "";
    button.dataset.control = `${isPaused ? "resume" : "pause"}/${target}`;
    if (button.firstChild) setText(button.firstChild, isPaused ? "Resume" : "Pause");
  }

  /** @param {HTMLFormElement} form */
  async #submit(form) {
    const input = form.querySelector("input"),
      { action, kind } = form.dataset;
    if (!input || !action) return;
    const value = input.value.trim();
    if (!value) {
      this.#answer(`Type a value into “${form.querySelector("label")?.textContent}” first.`, true);
      input.focus();
      return;
    }
    if (action === "rate") this.#forgetSlider();
    const body = { ...(kind ? { kind } : {}), [input.name]: value };
    if (await this.act(action, controlOf(input), body)) input.value = "";
  }

  #buildSlider() {
    const slider = inputOf("slider");
    slider.addEventListener("input", () => {
      this.#showTarget(this.#rates[slider.valueAsNumber]);
      clearTimeout(this.#sliderTimer);
      // Send one action when the slider rests, not one for each step.
      this.#sliderTimer = setTimeout(async () => {
        const isSet = await this.act("rate", "rate", { per_s: this.#rates[slider.valueAsNumber] });
        this.#sliderTimer = undefined;
        if (!isSet) this.#showRate(this.#perS);
      }, SLIDER_WAITS_MS);
    });
    this.#labelSlider();
  }

  // A typed rate replaces one that the slider has not sent yet.
  #forgetSlider() {
    clearTimeout(this.#sliderTimer);
    this.#sliderTimer = undefined;
  }

  #labelSlider() {
    const last = this.#rates.length - 1;
    inputOf("slider").max = String(last);
    byId("ticks").replaceChildren(
      ...this.#rates
        .map((perS, index) => /** @type {const} */ ([perS, index]))
        .filter(
          ([perS]) => perS === 0 || (perS > LEAST_PER_S && Number.isInteger(Math.log10(perS))),
        )
        .map(([perS, index]) => {
          const tick = element("span", {}, short(perS));
          tick.style.setProperty("--at", String(index / last));
          return tick;
        }),
    );
  }

  /**
   * Any rate may be set by typing; the slider then shows the nearest of its own rates.
   * @param {number} perS
   */
  #showRate(perS) {
    if (!Number.isFinite(perS)) return;
    const far = (/** @type {number} */ one) => Math.abs(Math.log((one + 1) / (perS + 1)));
    const nearest = this.#rates.reduce(
      (best, one, index) => (far(one) < far(this.#rates[best]) ? index : best),
      0,
    );
    inputOf("slider").value = String(nearest);
    this.#showTarget(perS);
  }

  /** @param {number} perS */
  #showTarget(perS) {
    setText(byId("target"), rate(perS));
    byId("slider").setAttribute("aria-valuetext", `${rate(perS)} per second`);
  }

  /** @param {Hello} hello */
  #buildServices(hello) {
    const titles = new Map(
      hello.engines.map((engine) => /** @type {const} */ ([engine.name, engine.title])),
    );
    const offered = Object.keys(hello.state.controls),
      done = new Set();
    this.#services.clear();
    byId("services").replaceChildren(
      ...hello.services.map((service) => {
        const target = service.engine ?? service.name,
          called = titles.get(service.engine ?? "") ?? service.name;
        const cell = (/** @type {string} */ name) => element("span", { class: name }, "–");
        /** @type {Service} */
        const shown = {
          target,
          status: cell("status"),
          cpu: cell("cpu"),
          memory: cell("memory"),
          hold: null,
        };
        this.#services.set(service.name, shown);
        const buttons = done.has(target)
          ? []
          : ["pause", "kill", "restart"]
              .filter((name) => offered.includes(`${name}/${target}`))
              .map((name) => this.#serviceButton(name, target, called));
        done.add(target);
        const hold = buttons.find((button) => controlOf(button).startsWith("pause/"));
        if (hold) shown.hold = { target, button: hold };
        return element(
          "li",
          {},
          element("span", { class: "name" }, service.name),
          shown.status,
          shown.cpu,
          shown.memory,
          buttons.length
            ? element("div", {}, ...buttons, element("small", { "data-reasons": "" }))
            : null,
        );
      }),
    );
  }

  /**
   * @param {string} name
   * @param {string} target
   * @param {string} called
   */
  #serviceButton(name, target, called) {
    const text = name[0].toUpperCase() + name.slice(1);
    const button = element(
      "button",
      { type: "button", "data-control": `${name}/${target}` },
      text,
      element("span", { class: "sr" }, ` ${called}`),
    );
    button.addEventListener("click", () => {
      const control = controlOf(button),
        [action] = control.split("/");
      this.act(action, control, { target });
    });
    return button;
  }

  /**
   * Before the generator has begun, its kinds of events are not known.
   * @param {State} state
   */
  #buildKinds({ rates, controls }) {
    const kinds = Object.keys(controls).filter(
      (name) => OTHER_KINDS.includes(name) || (name in rates && name !== "rate"),
    );
    if (kinds.every((name) => this.#kinds.has(name))) return;
    byId("more-load").hidden = !kinds.length;
    this.#kinds.clear();
    byId("kinds").replaceChildren(
      ...kinds.map((name) => {
        const now = element("output", {}, "–");
        this.#kinds.set(name, { now });
        const form = element(
          "form",
          { "data-action": "events", "data-kind": name },
          element("label", { for: `kind-${name}` }, name),
          now,
          element(
            "span",
            {},
            element("input", {
              id: `kind-${name}`,
              name: "per_s",
              autocomplete: "off",
              spellcheck: "false",
              "data-control": name,
              placeholder: "per second",
            }),
            element(
              "button",
              { "data-control": name },
              "Set",
              element("span", { class: "sr" }, ` ${name}`),
            ),
          ),
          element("small", { "data-reasons": "" }),
        );
        form.addEventListener("submit", (event) => {
          event.preventDefault();
          this.#submit(form);
        });
        return form;
      }),
    );
  }
}

/**
 * Carries out the actions of single keys, unless the user is typing or has turned these keys off.
 * @param {Key[]} keys
 */
export function listen(keys) {
  const byKey = new Map(keys.map((key) => /** @type {const} */ ([key.key, key]))),
    stored = "racetrack-single-keys";
  const use = inputOf("use-keys");
  use.checked = localStorage.getItem(stored) !== "off";
  use.addEventListener("change", () => localStorage.setItem(stored, use.checked ? "on" : "off"));
  byId("key-list").replaceChildren(
    ...keys.flatMap(({ key, means }) => [
      element("dt", {}, element("kbd", {}, key)),
      element("dd", {}, means),
    ]),
  );
  document.addEventListener("keydown", (event) => {
    const target = event.target instanceof HTMLElement ? event.target : null;
    const isTyping = target?.closest(
      "input:not([type=range]):not([type=radio]):not([type=checkbox]), dialog",
    );
    if (event.key === "Escape" && isTyping) target?.blur();
    if (isTyping || !use.checked || event.ctrlKey || event.metaKey || event.altKey) return;
    const found = byKey.get(event.key.length === 1 ? event.key.toLowerCase() : event.key);
    if (!found) return;
    event.preventDefault();
    found.does();
  });
}
