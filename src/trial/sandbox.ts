import type { Container } from '../engine/container.ts';
import { containerSpec } from './container-spec.ts';
import type { TrialParts } from './run-trial.ts';
import { preparedImage } from './snapshot.ts';
import type { TrialSpec } from './spec.ts';

/** A started container for one trial, from its prepared image; removed when disposed. */
export async function startSandbox(
  spec: TrialSpec,
  { engine, extraCertificates }: TrialParts,
  signal: AbortSignal,
): Promise<Container> {
  const imageId = await preparedImage(engine, spec, extraCertificates, signal);
  const labels = {
    'offsite.batch': spec.batchId,
    'offsite.run': spec.runId,
    'offsite.ordinal': String(spec.ordinal),
  };
  const { network } = spec.sandbox;
  const container = await engine.createContainer(
    { ...containerSpec(spec.sandbox, { network, labels }), imageId },
    signal,
  );
  try {
    await container.start(signal);
    return container;
  } catch (error) {
    await container[Symbol.asyncDispose]();
    throw error;
  }
}
