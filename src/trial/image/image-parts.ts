import type { Engine } from '../../engine/engine.ts';
import type { Image } from '../../engine/port/images.ts';
import type { Runner } from '../../harness/runner.ts';
import type { BuildLogs } from '../../ledger/build-logs.ts';
import type { TrialFailure } from '../failure.ts';
import type { ObserveBuild } from './build-event.ts';
import type { StartImage } from './start-image.ts';

/** What is needed to build the images of trials. All trials of a batch share it. */
export interface ImageParts {
  engine: Engine;
  /** The host's extra certificates, for install and prepare. */
  extraCertificates: Buffer | undefined;
  runners: readonly Runner[];
  /** The host's environment, in which git is found. */
  env: Readonly<NodeJS.ProcessEnv>;
  /** The images that environments begin with, keyed by what decides which one it is and how it is used. */
  starts: Map<string, StartImage>;
  /**
   * Image ids and names of volumes, keyed by the image's name or by the hash of a step's inputs. A batch
   * looks up each image once, so it keeps using the same image even if its name is given to another one
   * meanwhile. Clear this map if one of the images was removed.
   */
  known: Map<string, string>;
  /** The images that harnesses are installed in, by id. */
  images: Map<string, Image>;
  /** What earlier steps printed, in this process or another. Undefined if nobody will look at it. */
  buildLogs: BuildLogs | undefined;
  /**
   * Failures, keyed by the hash of a step's inputs: a script that failed is not run again for the next trial,
   * and an image that cannot be used is not looked at again.
   */
  failures: Map<string, TrialFailure>;
  observeBuild: ObserveBuild;
}

export interface PreparationOptions {
  /** Called before a step that must be built. The step runs while the resolved permit is held. */
  building?: (() => Promise<Disposable>) | undefined;
}
