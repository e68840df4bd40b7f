import type { Stops } from '../../translation/stops.ts';

export const stops: Stops = {
  STOP: 'done',
  MAX_TOKENS: 'length',
  SAFETY: 'refused',
  RECITATION: 'refused',
  LANGUAGE: 'refused',
  BLOCKLIST: 'refused',
  PROHIBITED_CONTENT: 'refused',
  SPII: 'refused',
};
