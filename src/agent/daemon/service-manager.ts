import { execa } from 'execa';

/** Milliseconds for `systemd-notify`, which writes one datagram. */
const timeoutMs = 10_000;

/** Notifies systemd of the daemon's state, if systemd asked for it. */
export interface ServiceManager {
  notify(...assignments: string[]): Promise<void>;
}

/**
 * Follows sd_notify(3), with systemd's own program, because Node cannot send datagrams to a Unix socket. Does
 * nothing if `NOTIFY_SOCKET` is not set. Notes only the first failure.
 */
export function serviceManager(env: NodeJS.ProcessEnv, note: (message: string) => void): ServiceManager {
  let noted = false;
  return {
    async notify(...assignments) {
      if (!env.NOTIFY_SOCKET) return;
      const { failed, shortMessage } = await execa('systemd-notify', assignments, {
        env: { NOTIFY_SOCKET: env.NOTIFY_SOCKET },
        reject: false,
        timeout: timeoutMs,
      });
      if (failed && !noted) note(`cannot notify systemd: ${shortMessage}`);
      noted ||= failed;
    },
  };
}
