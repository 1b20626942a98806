// For tests: certificates of their own, and a blocking TLS client.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "net/loop/test_server.h"

namespace portico::net {

// A fresh key and a self-signed certificate for localhost, as PEM files that go with the object.
class TestCertificate {
 public:
  explicit TestCertificate(std::string subject = "localhost") : subject_(std::move(subject)) {
    Renew();
  }
  // Another key and certificate in the same files.
  void Renew() {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* cert = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME* name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(subject_.c_str()), -1, -1, 0);
    X509_set_issuer_name(cert, name);
    X509_sign(cert, key, EVP_sha256());
    FILE* file = std::fopen(certificate.c_str(), "w");
    PEM_write_X509(file, cert);
    std::fclose(file);
    file = std::fopen(key_file.c_str(), "w");
    PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    X509_free(cert);
    EVP_PKEY_free(key);
  }
  ~TestCertificate() {
    std::remove(certificate.c_str());
    std::remove(key_file.c_str());
  }

  ServerOptions Options() const {
    ServerOptions options;
    options.tls.certificate = certificate;
    options.tls.key = key_file;
    return options;
  }

  std::string base = testing::TempDir() + "portico_tls_" + std::to_string(getpid()) + "_" +
                     std::to_string(++count_);
  std::string certificate = base + ".crt";
  std::string key_file = base + ".key";

 private:
  std::string subject_;
  static inline int count_ = 0;
};

class TlsClient {
 public:
  explicit TlsClient(int port, int receive_buffer = 0, int version = TLS1_3_VERSION,
                     std::string_view alpn = "\x08http/1.1", const TestCertificate* shown = nullptr)
      : socket_(port, receive_buffer), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_max_proto_version(context_, version);
    SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    SSL_CTX_set_security_level(context_, 0);
    SSL_CTX_set_options(context_, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (shown != nullptr) {
      SSL_CTX_use_certificate_file(context_, shown->certificate.c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_, shown->key_file.c_str(), SSL_FILETYPE_PEM);
    }
    ssl_ = SSL_new(context_);
    SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(alpn.data()),
                        static_cast<unsigned int>(alpn.size()));
    SSL_set_fd(ssl_, socket_.fd());
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }

  bool connected() const { return connected_; }
  // The server's, as PEM.
  std::string Certificate() const {
    X509* cert = SSL_get1_peer_certificate(ssl_);
    BIO* memory = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(memory, cert);
    char* text = nullptr;
    const long size = BIO_get_mem_data(memory, &text);
    std::string pem(text, static_cast<size_t>(size));
    BIO_free(memory);
    X509_free(cert);
    return pem;
  }
  SSL* ssl() { return ssl_; }
  void Send(std::string_view bytes) {
    SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
  }
  std::string Read(size_t size) {
    std::string out;
    char buffer[16384];
    while (out.size() < size) {
      int got =
          SSL_read(ssl_, buffer, static_cast<int>(std::min(sizeof buffer, size - out.size())));
      if (got <= 0) break;
      out.append(buffer, static_cast<size_t>(got));
    }
    return out;
  }
  std::string ReadAnswer() {
    std::string out;
    while (!out.ends_with("\r\n\r\n")) {
      std::string one = Read(1);
      if (one.empty()) return out;
      out += one;
    }
    size_t at = out.find("content-length: ");
    return at == std::string::npos ? out : out + Read(std::stoul(out.substr(at + 16)));
  }

 private:
  TestClient socket_;
  SSL_CTX* context_;
  SSL* ssl_;
  bool connected_;
};

}  // namespace portico::net
