import { systemClock } from '../../src/base/clock.ts';
import { findHostProgram } from '../../src/base/host-program.ts';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { installDebianPackages } from '../../src/base-image/build-from-debian.ts';
import { announcer } from './announcer.ts';

const programs = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** The path of a Chromium on this machine; undefined if it has none. `OFFSITE_CHROMIUM` names another one. */
export async function findBrowser(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (env.OFFSITE_CHROMIUM !== undefined) return env.OFFSITE_CHROMIUM;
  for (const program of programs) {
    const path = await findHostProgram(program, env);
    if (path !== undefined) return path;
  }
  return undefined;
}

/**
 * Makes sure that the tests of pages have a Chromium. Throws an `input` error that says what the user has to
 * do.
 */
export async function ensureBrowser(env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<void> {
  const { log, during } = announcer(process.stdout, systemClock);
  if ((await findBrowser(env)) === undefined) {
    if (env.OFFSITE_NO_INSTALL === '1') throw missing('OFFSITE_NO_INSTALL forbids changing this machine');
    if (process.geteuid?.() !== 0) throw missing('it takes root to install one');
    if ((await findHostProgram('apt-get', env)) === undefined)
      throw missing('there is no apt-get to install one with');
    await during('Installing chromium', () =>
      installDebianPackages({ packages: ['chromium', 'fonts-dejavu-core'], env, signal }),
    );
  }
  log(`Chromium: ${await findBrowser(env)}`);
}

function missing(why: string): OffsiteError {
  return new OffsiteError(`The tests need Chromium, this machine has none, and ${why}.`, {
    code: 'BROWSER_MISSING',
    kind: 'input',
    hint: "Install it ('sudo apt-get install chromium' on Debian), or name one in OFFSITE_CHROMIUM.",
  });
}
