// Data of the pages: charts (racetrack/report/chart_data.py), and the ranking (ranking.py).

export type Numbers = (number | null)[];

export interface Line {
  name: string;
  look: number;
  kind: "line" | "step" | "points";
  dash?: number[] | null;
  x: number[];
  y: Numbers;
  low?: Numbers | null;
  high?: Numbers | null;
}

export interface ChartData {
  title: string;
  x_title: string;
  y_title: string;
  x_unit: string;
  y_unit: string;
  x_decimals: number | null;
  y_decimals: number | null;
  log_x?: boolean;
  log_y?: boolean;
  x_from_zero?: boolean;
  band?: [number, number] | null;
  marks?: { name: string; begin: number; end: number | null }[];
  lines: Line[];
}

export interface Result {
  name: string;
  engine: string;
  version: string;
  path: string;
  classes: Record<string, string>;
  caveats?: string[];
  left_out?: string[];
  commands: string[];
  settings: Record<string, string>;
  versions: Record<string, string>;
  measured_from: string;
  measured_until: string;
  machine: { kernel: string };
  noise: Record<
    | "foreign_cpu_max_pct"
    | "steal_max_pct"
    | "core_min_mib_per_s"
    | "core_max_mib_per_s",
    number
  >;
  raw: { files: number; folders: string[]; sha256: string };
  views: {
    runs: number;
    of_workload: number;
    right: string[];
    wrong: string[];
    absent?: string[];
  };
}

// The figure of an engine at a load, beside those of the others.
export interface RankingRow {
  name: string;
  text: string;
  factors: Record<string, string>;
  n: number;
  held: boolean;
  unranked: string;
  verdicts: Record<string, number>;
  mean?: number | null;
  low?: number | null;
  high?: number | null;
}

export interface RankedRow extends RankingRow {
  rank: number;
  result: Result;
}

export interface Load {
  id: string;
  per_s: number;
  share: number | null;
}

export interface Standing {
  workload: string;
  machine: string;
  place: string;
  results: Result[];
  loads: Load[];
  answers: Record<string, string[]>;
  rankings: Record<string, Record<string, RankingRow[]>>;
}

export interface ChartPlan {
  title: string;
  unit: string;
  decimals: number;
  keys: string[];
}

export interface RankingData {
  metrics: Record<string, { title: string; unit: string; means: string; more: boolean }>;
  default: string;
  classes: Record<string, string>;
  charts: Record<string, ChartPlan>;
  standings: Standing[];
}
