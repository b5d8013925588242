// Data of the pages: charts (racetrack/report/chart_data.py), and the matrix (ranking.py).

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

export interface Column {
  key: string;
  title: string;
  at: string;
  unit: string;
  means: string;
  is_more_better: boolean;
}

// A figure of an engine; `value` is what it is sorted by, null at the end.
export interface Cell {
  text: string;
  sure: string;
  whole: string;
  value: number | null;
}

// The result of an engine, in one row of the matrix.
export interface Row {
  name: string;
  engine: string;
  path: string;
  version: string;
  unranked: string;
  disturbed: string;
  cells: Record<string, Cell>;
  answers: string;
  is_wrong: boolean;
  classes: string;
  commands: string[];
  facts: [string, string][];
}

// What holds among the engines of a class.
export interface Choice {
  names: string[];
  answers: string[];
  best: Record<string, string[]>;
}

// Engines on one machine with one workload; `family` is the workload without its `query`.
export interface Standing {
  workload: string;
  family: string;
  query: string;
  machine: string;
  place: string;
  columns: Column[];
  missing: string[];
  rows: Row[];
  choices: Record<string, Choice>;
  charts: Record<string, ChartData>;
}
