import { ensureBaseImage } from '../../src/base-image/ensure-base-image.ts';
import { type CaBundle, caBundleOf } from '../../src/base-image/host-certificates.ts';
import { runHostProgram } from '../../src/base-image/host-program.ts';
import { baseImageName, baseImageRecipe } from '../../src/base-image/recipe.ts';
import { systemClock } from '../../src/clock.ts';
import type { Capabilities } from '../../src/engine/port/capabilities.ts';
import { OffsiteError } from '../../src/offsite-error.ts';
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
    log(`Docker engine: ${facts.serverVersion}, ${facts.arch}, ${engine.address}`);
    const there = await port.images.find(baseImageName(baseImageRecipe), signal);
    // Needed only for a build.
    const caBundle = there === undefined ? await hostCaBundle(env, signal) : undefined;
    const image = await ensureBaseImage({ engine: port, log, during, env, signal, caBundle });
    log(`Base image: ${image.name} (${image.built})`);
    return facts;
  } finally {
    await engine.close();
  }
}

/** Calls npm only if nothing else names a bundle: it takes a third of a second. */
async function hostCaBundle(env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<CaBundle | undefined> {
  const sources = { env, explicit: env.OFFSITE_CA_BUNDLE };
  const named = await caBundleOf(sources);
  if (named !== undefined) return named;
  const answer = await runHostProgram({
    command: 'npm',
    args: ['config', 'get', 'cafile', '--loglevel=silent'],
    purpose: "ask npm for its 'cafile' setting",
    env,
    deadlineMs: 30_000,
    signal,
  }).catch((error) => {
    if (error instanceof OffsiteError) return 'null'; // without npm there are no npm settings
    throw error;
  });
  const path = answer.trim();
  return caBundleOf({ ...sources, npmCafile: path === 'null' ? undefined : path });
}
