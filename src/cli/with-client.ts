import { runners } from '../../runners/index.ts';
import type { Client } from '../client/client.ts';
import { systemClock } from '../clock.ts';
import { loadConfig } from '../suite/config-file.ts';
import type { Content } from '../text/output.ts';
import { dataFolderOf } from './data-folder.ts';
import { hostCertificates } from './host-certificates.ts';
import { integrationsOf } from './integrations.ts';
import { interruption } from './interruption.ts';
import { accessService } from './service-access.ts';
import { openTerminal } from './terminal.ts';

/** Options of every command that asks the service. */
export interface ServiceOptions {
  json?: true | undefined;
  config?: string | undefined;
  dataFolder?: string | undefined;
  insecureHttp?: true | undefined;
}

/**
 * Asks the configured service, or the embedded one, and prints the answer: as JSON as it came, else as `show` says. Interrupting ends
 * the call.
 */
export async function askService<Answer>(
  options: ServiceOptions,
  ask: (client: Client, signal: AbortSignal) => Promise<Answer>,
  show: (answer: Answer) => Content,
): Promise<void> {
  const { env } = process;
  const { out, err } = openTerminal();
  const config = loadConfig({ named: options.config, env });
  using interrupted = interruption((message) => err.print(message));
  await using access = await accessService({
    config,
    dataFolder: dataFolderOf(options.dataFolder, config, env),
    env,
    clock: systemClock,
    caBundle: (await hostCertificates(config, env))?.pem,
    integrations: integrationsOf(runners),
    insecureHttp: options.insecureHttp,
  });
  const answer = await ask(access.client, interrupted.signal);
  if (options.json) out.json(answer);
  else out.print(show(answer));
}
