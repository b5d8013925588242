// Messages of the server (racetrack/live/contract.py), and values that the page's modules share.


export type Values = Record<string, number | null>;

export interface Series {
  id: string;
  key: string;
  label: string;
  unit: string;
  group: string;
  look: string;
  engine: string | null;
  service: string | null;
}

export interface Figure {
  key: string;
  title: string;
  unit: string;
  means: string;
  group: string;
}

export interface SessionEvent {
  number: number;
  at_ms: number;
  kind: string;
  text: string;
  by: string;
}

export interface EngineState {
  name: string;
  status: string;
  text: string;
  verdict: { kind: string; text: string };
}

export interface State {
  now_ms: number;
  rates: Record<string, number>;
  load: string | null;
  load_stopped: string;
  segment: { number: number; from_ms: number; why: string };
  in_the_way: { what: string; text: string };
  engines: EngineState[];
  services: { name: string; status: string }[];
  memory: { text: string; warn: boolean }[];
  controls: Record<string, string>;
}

export interface Hello {
  session: string;
  now_ms: number;
  started_ms: number;
  folder: string;
  runtime: string;
  workload: string;
  machine: string;
  engines: { name: string; title: string; services: string[] }[];
  services: { name: string; engine: string | null }[];
  series: Series[];
  charts: Record<string, { title: string; means: string }>;
  panel: Figure[];
  kinds: { name: string; per_s: number; most_per_s: number }[];
  profiles: { name: string; form: string; example: string }[];
  history: { at_ms: number[]; values: Record<string, (number | null)[]> };
  events: SessionEvent[];
  state: State;
}

export interface Sample {
  at_ms: number;
  values: Values;
}

// An event on the time axis.
export interface Mark {
  timeS: number;
  kind: string;
  text: string;
  number: number;
}

export interface Timeline {
  fromS: number;
  untilS: number;
  segmentFromS: number;
  marks: Mark[];
  marksShown(): Mark[];
}

// `colour` is null for a line that belongs to no engine or service.
export interface Line {
  id: string;
  label: string;
  unit: string;
  colour: number | null;
  dash: number;
  width: number;
  isHidden?: boolean;
}

// Look of a chart: a logarithmic axis, or a linear one that reaches at least to `least`. `highest`:
// the highest value of each second is drawn. `isSlow`: drawn once a second.
export interface Look {
  height: number;
  title?: string | null;
  log?: boolean;
  least?: number;
  highest?: boolean;
  isSlow?: boolean;
  tick?: (value: number) => string;
}

export interface Spec extends Look {
  means?: string;
  label: string;
  lines: Line[];
  value: (value: number | null | undefined) => string;
}

export interface Key {
  key: string;
  means: string;
  does: () => void;
}
