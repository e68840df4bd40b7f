import { join } from 'node:path';
import { OffsiteError } from '../../offsite-error.ts';
import type { Config } from '../../suite/config-file.ts';
import { dataFolderOf } from '../data-folder.ts';
import { launchdAgent } from './launchd-agent.ts';
import type { ServiceSpec, ServiceUnit } from './service-unit.ts';
import { systemdUnit } from './systemd-unit.ts';

/** What a process knows of its machine and user. */
export interface ServiceHost {
  platform: NodeJS.Platform;
  env: NodeJS.ProcessEnv;
  home: string;
  uid: number;
  /** The program that runs this command line, and the script that it runs. */
  program: readonly string[];
}

export interface PlanOptions {
  scope: ServiceSpec['scope'];
  config: Config;
  dataFolder: string | undefined;
  runAs: string | undefined;
}

/**
 * The service unit for this machine's service manager, and the spec it is made from. Throws
 * `SERVICE_MANAGER_UNKNOWN` if we do not know the manager.
 */
export function planUnit(options: PlanOptions, host: ServiceHost): { unit: ServiceUnit; spec: ServiceSpec } {
  const spec = specOf(options, host);
  const isSystem = spec.scope === 'system';
  const configHome = host.env.XDG_CONFIG_HOME || join(host.home, '.config');
  if (host.platform === 'darwin') {
    const folder = isSystem ? '/Library/LaunchDaemons' : join(host.home, 'Library', 'LaunchAgents');
    return { spec, unit: launchdAgent(spec, folder, host.uid) };
  }
  if (host.platform === 'linux') {
    const folder = isSystem ? '/etc/systemd/system' : join(configHome, 'systemd', 'user');
    return { spec, unit: systemdUnit(spec, folder) };
  }
  throw new OffsiteError(`Offsite knows no service manager for ${host.platform}`, {
    code: 'SERVICE_MANAGER_UNKNOWN',
    kind: 'input',
    hint: 'Start `offsite daemon` by other means, or run it in a container: see compose.yaml.',
  });
}

/** A system service keeps its results in /var/lib/offsite, unless a data folder is named. */
function specOf({ scope, config, dataFolder, runAs }: PlanOptions, host: ServiceHost): ServiceSpec {
  const isNamed = dataFolder ?? host.env.OFFSITE_HOME ?? config.dataFolder;
  const usual = scope === 'system' && !isNamed ? '/var/lib/offsite' : undefined;
  const folder = usual ?? dataFolderOf(dataFolder, config, { ...host.env, HOME: host.home });
  const configHome = host.env.XDG_CONFIG_HOME || join(host.home, '.config');
  return {
    scope,
    command: [
      ...host.program,
      'daemon',
      '--data-folder',
      folder,
      // The service starts in another folder and would find another configuration if none were named.
      ...(config.file === undefined ? [] : ['--config', config.file]),
    ],
    dataFolder: folder,
    environmentFile:
      scope === 'system' ? '/etc/offsite/daemon.env' : join(configHome, 'offsite', 'daemon.env'),
    runAs,
  };
}
