import { join } from 'node:path';
import { dataFolderOf } from '../../api/data-folder.ts';
import { inputError } from '../../base/offsite-error.ts';
import type { Config } from '../../suite/config-file.ts';
import { mark, type ServiceSpec, type ServiceUnit } from './unit-file.ts';

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
  throw inputError('SERVICE_MANAGER_UNKNOWN', `Offsite knows no service manager for ${host.platform}`, {
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
    // The service starts in another folder and would find another configuration if none were named.
    command: [
      ...host.program,
      'daemon',
      '--data-folder',
      folder,
      ...(config.file ? ['--config', config.file] : []),
    ],
    dataFolder: folder,
    environmentFile: join(scope === 'system' ? '/etc' : configHome, 'offsite', 'daemon.env'),
    runAs,
  };
}

const label = 'local.offsite.daemon';

/**
 * The daemon's launchd file. launchd cannot read a file of variables, so a shell reads it and then becomes
 * the daemon (exec).
 *
 * @param folder where launchd looks for agents or daemons
 * @param uid the user in whose session an agent runs
 */
function launchdAgent(spec: ServiceSpec, folder: string, uid: number): ServiceUnit {
  const isSystem = spec.scope === 'system';
  const domain = isSystem ? 'system' : `gui/${uid}`;
  const file = join(folder, `${label}.plist`);
  const log = join(spec.dataFolder, 'daemon.log');
  const script = 'f=$1; shift; if [ -r "$f" ]; then set -a; . "$f"; set +a; fi; exec "$@"';
  const words = ['/bin/sh', '-c', script, 'sh', spec.environmentFile, ...spec.command];
  const runAs = isSystem ? spec.runAs : undefined;
  const userName = runAs === undefined ? '' : `  <key>UserName</key>\n  <string>${escaped(runAs)}</string>\n`;
  const text = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ${mark} It does not touch a file without this line. -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${label}</string>
  <key>ProgramArguments</key>
  <array>
${words.map((word) => `    <string>${escaped(word)}</string>`).join('\n')}
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>900</integer>
  <key>ProcessType</key>
  <string>Standard</string>
  <key>Umask</key>
  <integer>63</integer>
${userName}  <key>StandardOutPath</key>
  <string>${escaped(log)}</string>
  <key>StandardErrorPath</key>
  <string>${escaped(log)}</string>
</dict>
</plist>
`;
  return {
    name: label,
    file,
    text,
    enabledBy: undefined,
    start: [`launchctl bootstrap ${domain} '${file}'`, `launchctl print ${domain}/${label}`],
    stop: [`launchctl bootout ${domain}/${label}`],
    forget: [],
  };
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

const name = 'offsite.service';

/**
 * Denies the daemon what it does not need. It needs only the engine's socket, the network and its data
 * folder, because the engine runs the sandboxes. These settings work for a user's services as well. W^X is
 * not among them, because V8 compiles at run time.
 */
const hardening = [
  'NoNewPrivileges=yes',
  'LockPersonality=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'RestrictNamespaces=yes',
  // AF_NETLINK: the resolver asks the kernel which addresses there are.
  'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
  'SystemCallArchitectures=native',
  'UMask=0077',
];

/**
 * Settings that only the system's manager supports. A process can still connect to a socket in a read-only
 * file system.
 */
const systemHardening = [
  'ProtectSystem=strict',
  'ProtectHome=read-only',
  'PrivateTmp=yes',
  'PrivateDevices=yes',
  'ProtectClock=yes',
  'ProtectControlGroups=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
];

/** The daemon's unit. `folder` is where the manager of that scope looks for units. */
function systemdUnit(spec: ServiceSpec, folder: string): ServiceUnit {
  const isSystem = spec.scope === 'system';
  const target = isSystem ? 'multi-user.target' : 'default.target';
  const systemctl = isSystem ? 'systemctl' : 'systemctl --user';
  const [program = '', ...args] = spec.command;
  const service = [
    'Type=notify',
    // Node cannot write to systemd's socket, so the daemon starts another process for that.
    'NotifyAccess=all',
    // The daemon notifies systemd every few seconds while no loop is stuck. A loop counts as stuck when it is
    // a minute late.
    'WatchdogSec=180',
    'TimeoutStartSec=300',
    `ExecStart=${[quoted(program), ...args.map(quoted)].join(' ')}`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    `EnvironmentFile=-${specifier(spec.environmentFile)}`,
    ...(isSystem && spec.runAs !== undefined ? [`User=${spec.runAs}`] : []),
    'Restart=on-failure',
    'RestartSec=10',
    '# 2 is a mistake in the configuration, which a restart does not correct.',
    '# 130 and 143 are a daemon that got three signals to end.',
    'RestartPreventExitStatus=2',
    'SuccessExitStatus=130 143',
    '# Stopping drains: running trials may end. If one takes longer, the next daemon starts it again.',
    'KillMode=mixed',
    'TimeoutStopSec=900',
    '',
    ...hardening,
    ...(isSystem ? [...systemHardening, capabilities(spec), ...writable(spec.dataFolder)] : []),
  ];
  const lines = [
    `# ${mark} It does not touch a file without this line.`,
    '[Unit]',
    'Description=Offsite: runs queued evaluation trials in local sandboxes',
    'After=network-online.target docker.service',
    'Wants=network-online.target',
    // systemd must not give up if the engine is down for an hour.
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    ...service,
    '',
    '[Install]',
    `WantedBy=${target}`,
  ];
  return {
    name,
    file: join(folder, name),
    text: `${lines.join('\n')}\n`,
    enabledBy: join(folder, `${target}.wants`, name),
    start: [`${systemctl} daemon-reload`, `${systemctl} enable --now ${name}`, `${systemctl} status ${name}`],
    stop: [`${systemctl} disable --now ${name}`],
    forget: [`${systemctl} daemon-reload`],
  };
}

/** Root keeps only the capability to read all files: program and configuration may be in a user's home. */
function capabilities({ runAs }: ServiceSpec): string {
  return `CapabilityBoundingSet=${runAs === undefined ? 'CAP_DAC_READ_SEARCH' : ''}`;
}

/** systemd creates a folder below /var/lib, for the user that the daemon runs as. */
function writable(dataFolder: string): string[] {
  const [, below] = /^\/var\/lib\/([\w.-]+)$/.exec(dataFolder) ?? [];
  return below === undefined
    ? [`ReadWritePaths=${quoted(dataFolder)}`]
    : [`StateDirectory=${below}`, 'StateDirectoryMode=0700'];
}

/** Quotes a word for a unit's command line, with `%` and `$` escaped. */
function quoted(word: string): string {
  const literal = specifier(word).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('$', '$$$$');
  return /[^\w@%+=:,./$-]/.test(word) || word === '' ? `"${literal}"` : literal;
}

function specifier(text: string): string {
  return text.replaceAll('%', '%%');
}
