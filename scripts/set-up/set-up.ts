import { hostCertificates } from '../../src/api/host-certificates.ts';
import { systemClock } from '../../src/base/clock.ts';
import { ensureBaseImage } from '../../src/base-image/ensure-base-image.ts';
import type { Capabilities } from '../../src/engine/port/engine-port.ts';
import { announcer } from './announcer.ts';
import { ensureEngine } from './ensure-engine.ts';

/**
 * Makes sure that there is a Docker engine with the base image, and reports its progress on standard output.
 * If both exist, it takes a moment. Returns what the engine says of itself. Throws an `OffsiteError` that
 * says what the user has to do.
 */
export async function setUp(env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<Capabilities> {
  const { log, during } = announcer(process.stdout, systemClock);
  const engine = await ensureEngine({ env, log, during, clock: systemClock, signal });
  try {
    const { port } = engine;
    const facts = await port.facts(signal);
    log(`Engine: ${facts.product} ${facts.serverVersion}, ${facts.arch}, ${engine.address}`);
    const caBundle = (await hostCertificates({ caBundle: env.OFFSITE_CA_BUNDLE }, env))?.path;
    const image = await ensureBaseImage({ engine: port, log, during, env, signal, caBundle });
    log(`Base image: ${image.name} (${image.built})`);
    return facts;
  } finally {
    await engine.close();
  }
}
