// Figures and times as text.

export const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

// Changes the document only if the text is new.
export const setText = (place, text) => {
  if (place.textContent !== text) place.textContent = text;
};

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const digits = (value, decimals) => value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });

export const rate = (perS) => (isNumber(perS) ? digits(perS, Math.abs(perS) < 10 && perS % 1 ? 1 : 0) : "–");

const duration = (ms) => {
  if (!isNumber(ms)) return "–";
  if (ms <= 1) return "≤ 1 ms";
  if (ms < 999.5) return `${digits(ms, 0)} ms`;
  if (ms < 99_950) return `${digits(ms / 1000, ms < 9_995 ? 2 : 1)} s`;
  return `${digits(ms / 60_000, 1)} min`;
};

const percent = (value) => (isNumber(value) ? `${digits(value, Math.abs(value) < 9.95 ? 1 : 0)} %` : "–");
const gib = (value) => (isNumber(value) ? `${digits(value, 2)} GiB` : "–");
const count = (value) => (isNumber(value) ? digits(value, 0) : "–");
const perSecond = (value) => (isNumber(value) ? `${rate(value)} /s` : "–");

// Formats values of a unit of the registry of metrics; all other units are percentages.
const FORMATS = { "/s": perSecond, ms: duration, GiB: gib, pageviews: count };
export const formatOf = (unit) => FORMATS[unit] ?? percent;

// Seconds of the session as 1:02 or 1:02:03.
export const clock = (seconds) => {
  const whole = Math.max(0, Math.floor(seconds)), two = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
};

// Rates on an axis: 5k, 1.5M.
export const short = (value) => {
  if (value >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  return value >= 1e3 ? `${+(value / 1e3).toPrecision(3)}k` : String(+value.toPrecision(3));
};

// Milliseconds on an axis.
export const shortDuration = (ms) => {
  return ms >= 1000 ? `${digits(ms / 1000, 0)} s` : `${+ms.toPrecision(2)} ms`;
};
