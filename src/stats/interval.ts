/** A range that contains the true value with a stated confidence. */
export interface Interval {
  low: number;
  high: number;
}

/** The usual confidence of an interval: 95 %. */
export const usualConfidence = 0.95;
