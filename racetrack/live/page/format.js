// Elements, and figures and times as text.

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes]
 * @param {(Node | string | null | undefined)[]} children
 */
export const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

/**
 * The element with this id, which must be of this kind.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 */
export const byIdOf = (id, kind) => {
  const place = document.getElementById(id);
  if (!(place instanceof kind)) throw new TypeError(`The page has no ${kind.name} #${id}.`);
  return place;
};

/** @param {string} id */
export const byId = (id) => byIdOf(id, HTMLElement);

/** @param {string} id */
export const inputOf = (id) => byIdOf(id, HTMLInputElement);

/** @param {string} id */
export const dialogOf = (id) => byIdOf(id, HTMLDialogElement);

/**
 * Changes the document only if the text is new.
 * @param {Node} place
 * @param {string} text
 */
export const setText = (place, text) => {
  if (place.textContent !== text) place.textContent = text;
};

/** @typedef {number | null | undefined} Value */

/**
 * @param {unknown} value
 * @returns {value is number}
 */
export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/**
 * @param {number} value
 * @param {number} decimals
 */
const digits = (value, decimals) =>
  value.toLocaleString("en-US", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });

/** @param {Value} perS */
export const rate = (perS) =>
  isNumber(perS) ? digits(perS, Math.abs(perS) < 10 && perS % 1 ? 1 : 0) : "–";

/** @param {Value} ms */
const duration = (ms) => {
  if (!isNumber(ms)) return "–";
  if (ms <= 1) return "≤ 1 ms";
  if (ms < 999.5) return `${digits(ms, 0)} ms`;
  if (ms < 99_950) return `${digits(ms / 1000, ms < 9_995 ? 2 : 1)} s`;
  return `${digits(ms / 60_000, 1)} min`;
};

/** @param {Value} value */
const percent = (value) =>
  isNumber(value) ? `${digits(value, Math.abs(value) < 9.95 ? 1 : 0)} %` : "–";

/** @param {Value} value */
const gib = (value) => (isNumber(value) ? `${digits(value, 2)} GiB` : "–");

/** @param {Value} value */
const count = (value) => (isNumber(value) ? digits(value, 0) : "–");

/** @param {Value} value */
const perSecond = (value) => (isNumber(value) ? `${rate(value)} /s` : "–");

/**
 * Formats values of a unit of the registry of metrics; all other units are percentages.
 * @type {Record<string, (value: Value) => string>}
 */
const FORMATS = { "/s": perSecond, ms: duration, GiB: gib, events: count };

/** @param {string} unit */
export const formatOf = (unit) => FORMATS[unit] ?? percent;

/**
 * Seconds of the session as 1:02 or 1:02:03.
 * @param {number} seconds
 */
export const clock = (seconds) => {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const rest = two(whole % 60);
  return hours ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
};

/**
 * Rates on an axis: 5k, 1.5M.
 * @param {number} value
 */
export const short = (value) => {
  if (value >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  return value >= 1e3 ? `${+(value / 1e3).toPrecision(3)}k` : String(+value.toPrecision(3));
};

/**
 * Milliseconds on an axis.
 * @param {number} ms
 */
export const shortDuration = (ms) =>
  ms >= 1000 ? `${digits(ms / 1000, 0)} s` : `${+ms.toPrecision(2)} ms`;
