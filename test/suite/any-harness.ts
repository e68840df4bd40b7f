import type { HarnessOffer } from '../../src/suite/planned-variant.ts';

/** Takes any model, and promises nothing. */
export const anyHarness: HarnessOffer = { name: 'any', wires: [], continues: false, mcp: [], limits: [] };
