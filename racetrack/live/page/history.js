// Figures over time in bounded memory: recent rows as they came, older rows thinned to two per
// bucket of time, which keep each column's lowest and highest value in their order. No peak is
// lost.

import { isNumber } from "./format.js";

const MOST_ROWS = 4000,
  RECENT_S = 120,
  FIRST_BUCKET_S = 0.25;

export class History {
  #mostRows;
  #recentS;
  #bucketS = FIRST_BUCKET_S;
  /** @type {number[]} seconds of the session, rising */
  times = [];
  /**
   * Values by name, null where there is none; as long as `times`.
   * @type {Map<string, (number | null)[]>}
   */
  columns = new Map();

  constructor({ mostRows = MOST_ROWS, recentS = RECENT_S } = {}) {
    this.#mostRows = mostRows;
    this.#recentS = recentS;
  }

  /**
   * Ignores a row that is not newer than the last one: after a reconnection the server may repeat
   * some.
   * @param {number} timeS
   * @param {Record<string, number | null | undefined>} values
   */
  add(timeS, values) {
    if (!Number.isFinite(timeS) || (this.times.length && timeS <= this.#lastS())) return false;
    this.times.push(timeS);
    for (const name of Object.keys(values)) this.column(name);
    for (const [name, column] of this.columns) {
      const value = values[name];
      column[this.times.length - 1] = isNumber(value) ? value : null;
    }
    if (this.times.length > this.#mostRows) this.#thin();
    return true;
  }

  #lastS() {
    return this.times[this.times.length - 1];
  }

  /** @param {string} name */
  column(name) {
    const known = this.columns.get(name);
    if (known) return known;
    const column = new Array(this.times.length).fill(null);
    this.columns.set(name, column);
    return column;
  }

  clear() {
    this.times = [];
    this.columns.clear();
    this.#bucketS = FIRST_BUCKET_S;
  }

  /**
   * The index of the last row at or before a time; -1 before the first.
   * @param {number} timeS
   */
  indexAt(timeS) {
    let low = 0,
      high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= timeS) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /**
   * Times and the highest value of each column per bucket, from a time on: used for values that
   * rise and fall within a second. The last bucket is left out until it is complete.
   * @param {string[]} names
   * @param {number} fromS
   * @param {number} bucketS
   * @returns {(number | null)[][]}
   */
  highest(names, fromS, bucketS) {
    const columns = names.map((name) => this.column(name));
    /** @type {number[]} */
    const times = [];
    const found = names.map(() => /** @type {(number | null)[]} */ ([]));
    let bucket = null;
    for (
      let at = Math.max(0, this.indexAt((Math.floor(fromS / bucketS) - 1) * bucketS));
      at < this.times.length;
      at++
    ) {
      const of = Math.floor(this.times[at] / bucketS);
      if (of !== bucket) {
        bucket = of;
        times.push(this.times[at]);
        for (const column of found) column.push(null);
      }
      times[times.length - 1] = this.times[at];
      columns.forEach((column, number) => {
        const highest = found[number],
          last = highest.length - 1,
          value = column[at],
          top = highest[last];
        if (value !== null && (top === null || value > top)) highest[last] = value;
      });
    }
    return [times, ...found].map((column) => (times.length > 1 ? column.slice(0, -1) : column));
  }

  /**
   * The highest value of a column since a time; null if it has none.
   * @param {string} name
   * @param {number} fromS
   */
  peak(name, fromS) {
    const known = this.column(name)
      .slice(this.indexAt(fromS) + 1)
      .filter((value) => value !== null);
    return known.length ? Math.max(...known) : null;
  }

  #thin() {
    const length = this.times.length;
    const old = Math.max(
      this.indexAt(this.#lastS() - this.#recentS) + 1,
      length - this.#mostRows / 2,
    );
    let buckets = this.#buckets(old);
    while (2 * buckets.length + length - old > 0.75 * this.#mostRows) {
      this.#bucketS *= 2;
      buckets = this.#buckets(old);
    }
    const times = this.times;
    this.times = buckets
      .flatMap(([from, end]) => (end - from === 1 ? [times[from]] : [times[from], times[end - 1]]))
      .concat(times.slice(old));
    for (const [name, column] of this.columns) {
      this.columns.set(
        name,
        buckets.flatMap(([from, end]) => extremes(column, from, end)).concat(column.slice(old)),
      );
    }
  }

  /**
   * Ranges of indices of the first rows, each within one bucket of time.
   * @param {number} end
   */
  #buckets(end) {
    /** @type {[number, number][]} */
    const found = [];
    const of = (/** @type {number} */ index) => Math.floor(this.times[index] / this.#bucketS);
    for (let at = 0, from = 0; at < end; at++) {
      if (at + 1 === end || of(at + 1) !== of(from)) {
        found.push([from, at + 1]);
        from = at + 1;
      }
    }
    return found;
  }
}

/**
 * The lowest and the highest value in their order; as many values as the range has rows, two at
 * most.
 * @param {(number | null)[]} column
 * @param {number} from
 * @param {number} end
 */
function extremes(column, from, end) {
  if (end - from <= 2) return column.slice(from, end);
  let low = -1;
  let high = -1;
  let lowest = Infinity;
  let highest = -Infinity;
  for (let at = from; at < end; at++) {
    const value = column[at];
    if (value === null) continue;
    if (low < 0 || value < lowest) [low, lowest] = [at, value];
    if (high < 0 || value >= highest) [high, highest] = [at, value];
  }
  if (low < 0) return [null, null];
  // If the range has a single value, or only equal ones, a gap beside them is kept.
  if (low === high) return low === from ? [column[low], null] : [null, column[low]];
  return low < high ? [column[low], column[high]] : [column[high], column[low]];
}
