import type { Engine } from '../../engine/engine.ts';
import type { ConfigRevisions } from '../config-revision.ts';

/** What trials run on. */
export interface Workplace {
  engine: Engine;
  revisions: ConfigRevisions;
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
}
