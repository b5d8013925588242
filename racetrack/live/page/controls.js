// Actions of the page: forms, buttons, the slider and keys. What can't be done now is grey, stays
// reachable by keyboard, and says why.
import { element, formatOf, rate, setText, short } from "./format.js";

const byId = (id) => document.getElementById(id);
const STOPS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
const LEAST_PER_S = 10, MOST_PER_S = 1e6, SLIDER_WAITS_MS = 250;
const OTHER_KINDS = ["purchases", "updates", "deletes", "reads"]; // kinds that a workload lacks are shown with a reason
const NO_TOKEN = "Open the address that the terminal printed: it carries the token.";
const NOT_CONNECTED = "The connection to the session is lost.";

// Rates of the slider: 0, then ten to a decade.
const sliderRates = (most) => {
  const rates = [0];
  for (let power = LEAST_PER_S; power <= most; power *= 10) rates.push(...STOPS.map((stop) => Math.round(stop * power)).filter((perS) => perS <= most));
  return rates;
};

export class Controls {
  #token = new URLSearchParams(location.hash.slice(1)).get("token");
  #reasons = {}; // from the server: why an action is not possible now, by control
  #isBegun = false;
  #connected = false;
  #ended = false;
  #rates = sliderRates(MOST_PER_S);
  #sliderTimer = null;
  #perS = 0; // rate of the session
  #services = new Map();
  #kinds = new Map();

  constructor() {
    for (const form of document.querySelectorAll("form[data-action]")) {
      form.addEventListener("submit", (event) => { event.preventDefault(); this.#submit(form); });
    }
    this.#buildSlider();
    byId("ask-end").addEventListener("click", () => { if (this.#allowed("end")) byId("end").showModal(); });
    byId("end").addEventListener("close", () => { if (byId("end").returnValue === "end") this.act("end", "end", {}); byId("end").returnValue = ""; });
    this.#show();
  }

  // Makes the controls that differ between sessions.
  begin(hello) {
    this.#isBegun = true;
    const most = hello.kinds.find((kind) => kind.name === "pageviews")?.most_per_s ?? MOST_PER_S;
    this.#rates = sliderRates(Math.min(most, MOST_PER_S));
    this.#labelSlider();
    byId("profile").placeholder = (hello.profiles.find(({ name }) => name === "spike") ?? hello.profiles.at(-1))?.example ?? "";
    byId("profiles").replaceChildren(...hello.profiles.map(({ example, form }) => element("option", { value: example }, form)));
    byId("profile").title = hello.profiles.map(({ name, form }) => `${name} ${form}`).join("\n");
    this.#buildServices(hello);
    setText(byId("folder"), hello.folder);
  }

  connect(connected, ended = false) {
    this.#connected = connected;
    this.#ended = ended;
    this.#show();
  }

  update(state) {
    this.#reasons = state.controls;
    this.#buildKinds(state);
    this.#perS = state.rates.pageviews;
    setText(byId("mode"), state.load ? `profile: ${state.load}` : state.load_stopped || (Number.isFinite(this.#perS) ? "constant" : "\u00a0"));
    if (!this.#sliderTimer) this.#showRate(this.#perS);
    const statuses = new Map([...state.services, ...state.engines].map(({ name, status }) => [name, status]));
    for (const { target, status } of this.#services.values()) this.#showStatus(status, statuses.get(target) ?? "");
    for (const [name, kind] of this.#kinds) setText(kind.now, name in state.rates ? `${rate(state.rates[name])} /s` : "–");
    this.#show();
  }

  figures(series, values) {
    for (const { id, service, group, unit } of series) {
      const place = this.#services.get(service)?.[group];
      if (place) setText(place, formatOf(unit)(values[id]));
    }
  }

  // Steps the slider from the keyboard wherever the focus is.
  step(by) {
    const slider = byId("slider");
    if (!this.#allowed("rate")) return;
    slider.valueAsNumber += by;
    slider.dispatchEvent(new Event("input"));
  }

  async act(action, control, body) {
    if (!this.#allowed(control)) return false;
    try {
      const answer = await fetch(`/actions/${action}`, {
        method: "POST", body: JSON.stringify(body), signal: AbortSignal.timeout(10_000),
        headers: { "Content-Type": "application/json", "X-Racetrack-Token": this.#token },
      });
      const { error } = await answer.json();
      this.#answer(error || "", !answer.ok);
      return answer.ok;
    } catch (error) {
      this.#answer(`The session did not answer: ${error.message}. It may have ended; see the terminal.`, true);
      return false;
    }
  }

  #answer(text, isError) {
    byId("answer").className = isError ? "bad" : "";
    byId("answer").textContent = text || "\u00a0";
  }

  #reason(control) {
    if (this.#ended) return "The session has ended.";
    if (!this.#connected) return NOT_CONNECTED;
    if (!this.#token) return NO_TOKEN;
    return this.#reasons[control] ?? "The session does not offer this.";
  }

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
    for (const control of document.querySelectorAll("[data-control]")) {
      const reason = this.#reason(control.dataset.control);
      control.setAttribute("aria-disabled", String(Boolean(reason)));
      control.title = reason;
      if (control instanceof HTMLInputElement) control.readOnly = Boolean(reason);
      if (control.type === "range") control.disabled = Boolean(reason);
    }
    for (const place of document.querySelectorAll("[data-reasons]")) {
      const beside = [...place.parentElement.querySelectorAll("button[data-control]")].map((button) => button.dataset.control);
      const found = beside.map((control) => this.#reasons[control]).filter((reason) => reason && reason !== all);
      setText(place, [...new Set(found)].join(" "));
    }
  }

  #showStatus(place, status) {
    setText(place, status);
    place.dataset.status = status;
  }

  // A single button pauses and resumes.
  #showHold(hold) {
    const { target, button } = hold;
    const isPaused = this.#reasons[`resume/${target}`] === "";
    button.dataset.control = `${isPaused ? "resume" : "pause"}/${target}`;
    setText(button.firstChild, isPaused ? "Resume" : "Pause");
  }

  async #submit(form) {
    const input = form.querySelector("input"), action = form.dataset.action;
    const value = input.value.trim();
    if (!value) { this.#answer(`Type a value into “${form.querySelector("label").textContent}” first.`, true); input.focus(); return; }
    if (action === "rate") this.#forgetSlider();
    const body = { ...(form.dataset.kind ? { kind: form.dataset.kind } : {}), [input.name]: value };
    if (await this.act(action, input.dataset.control, body)) input.value = "";
  }

  #buildSlider() {
    const slider = byId("slider");
    slider.addEventListener("input", () => {
      this.#showTarget(this.#rates[slider.valueAsNumber]);
      clearTimeout(this.#sliderTimer);
      // Send one action when the slider rests, not one for each step.
      this.#sliderTimer = setTimeout(async () => {
        const isSet = await this.act("rate", "rate", { per_s: this.#rates[slider.valueAsNumber] });
        this.#sliderTimer = null;
        if (!isSet) this.#showRate(this.#perS);
      }, SLIDER_WAITS_MS);
    });
    this.#labelSlider();
  }

  // A typed rate replaces one that the slider has not sent yet.
  #forgetSlider() {
    clearTimeout(this.#sliderTimer);
    this.#sliderTimer = null;
  }

  #labelSlider() {
    const last = this.#rates.length - 1;
    byId("slider").max = last;
    byId("ticks").replaceChildren(...this.#rates.map((perS, index) => [perS, index])
      .filter(([perS]) => perS === 0 || (perS > LEAST_PER_S && Number.isInteger(Math.log10(perS))))
      .map(([perS, index]) => {
        const tick = element("span", {}, short(perS));
        tick.style.setProperty("--at", index / last);
        return tick;
      }));
  }

  // Any rate may be set by typing; the slider then shows the nearest of its own rates.
  #showRate(perS) {
    if (!Number.isFinite(perS)) return;
    const far = (one) => Math.abs(Math.log((one + 1) / (perS + 1)));
    const nearest = this.#rates.reduce((best, one, index) => (far(one) < far(this.#rates[best]) ? index : best), 0);
    byId("slider").value = nearest;
    this.#showTarget(perS);
  }

  #showTarget(perS) {
    setText(byId("target"), rate(perS));
    byId("slider").setAttribute("aria-valuetext", `${rate(perS)} per second`);
  }

  #buildServices(hello) {
    const titles = new Map(hello.engines.map((engine) => [engine.name, engine.title]));
    const offered = Object.keys(hello.state.controls), done = new Set();
    this.#services.clear();
    byId("services").replaceChildren(...hello.services.map((service) => {
      const target = service.engine ?? service.name, called = titles.get(service.engine) ?? service.name;
      const cell = (name) => element("span", { class: name }, "–");
      const shown = { target, status: cell("status"), cpu: cell("cpu"), memory: cell("memory"), hold: null };
      this.#services.set(service.name, shown);
      const buttons = done.has(target) ? [] : ["pause", "kill", "restart"].filter((name) => offered.includes(`${name}/${target}`))
        .map((name) => this.#serviceButton(name, target, called));
      done.add(target);
      const hold = buttons.find((button) => button.dataset.control.startsWith("pause/"));
      if (hold) shown.hold = { target, button: hold };
      return element("li", {},
        element("span", { class: "name" }, service.name), shown.status, shown.cpu, shown.memory,
        buttons.length ? element("div", {}, ...buttons, element("small", { "data-reasons": "" })) : null);
    }));
  }

  #serviceButton(name, target, called) {
    const text = name[0].toUpperCase() + name.slice(1);
    const button = element("button", { type: "button", "data-control": `${name}/${target}` }, text, element("span", { class: "sr" }, ` ${called}`));
    button.addEventListener("click", () => {
      const [action] = button.dataset.control.split("/");
      this.act(action, button.dataset.control, { target });
    });
    return button;
  }

  // Before the generator has begun, its kinds of events are not known.
  #buildKinds({ rates, controls }) {
    const kinds = Object.keys(controls).filter((name) => OTHER_KINDS.includes(name) || (name in rates && name !== "rate"));
    if (kinds.every((name) => this.#kinds.has(name))) return;
    byId("more-load").hidden = !kinds.length;
    this.#kinds.clear();
    byId("kinds").replaceChildren(...kinds.map((name) => {
      const now = element("output", {}, "–");
      this.#kinds.set(name, { now });
      const form = element("form", { "data-action": "events", "data-kind": name },
        element("label", { for: `kind-${name}` }, name), now,
        element("span", {},
          element("input", { id: `kind-${name}`, name: "per_s", autocomplete: "off", spellcheck: "false", "data-control": name, placeholder: "per second" }),
          element("button", { "data-control": name }, "Set", element("span", { class: "sr" }, ` ${name}`))),
        element("small", { "data-reasons": "" }));
      form.addEventListener("submit", (event) => { event.preventDefault(); this.#submit(form); });
      return form;
    }));
  }
}

// Carries out the actions of single keys, unless the user is typing or has turned these keys off.
export function listen(keys) {
  const byKey = new Map(keys.map((key) => [key.key, key])), stored = "racetrack-single-keys";
  const use = byId("use-keys");
  use.checked = localStorage.getItem(stored) !== "off";
  use.addEventListener("change", () => localStorage.setItem(stored, use.checked ? "on" : "off"));
  byId("key-list").replaceChildren(...keys.flatMap(({ key, means }) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, means)]));
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input:not([type=range]):not([type=radio]):not([type=checkbox]), dialog");
    if (event.key === "Escape" && isTyping) event.target.blur();
    if (isTyping || !use.checked || event.ctrlKey || event.metaKey || event.altKey) return;
    const found = byKey.get(event.key.length === 1 ? event.key.toLowerCase() : event.key);
    if (!found) return;
    event.preventDefault();
    found.does();
  });
}

